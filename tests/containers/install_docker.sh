#!/bin/sh
# Install a Docker engine, compose and debootstrap from Debian's packages, where they are missing.
set -e
for program in dockerd docker-compose debootstrap; do
  if ! PATH=$PATH:/usr/sbin command -v $program >/dev/null; then
    sh tests/harness/apt_install.sh docker.io docker-compose debootstrap
  fi
done
