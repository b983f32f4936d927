#!/bin/sh
# Install a Docker engine, compose and debootstrap from Debian's packages, where they are missing.
set -e
for program in dockerd docker-compose debootstrap; do
  if ! PATH=$PATH:/usr/sbin command -v $program >/dev/null; then
    apt-get update -q >/dev/null
    apt-get install -y -q --no-install-recommends docker.io docker-compose debootstrap >/dev/null
  fi
done
