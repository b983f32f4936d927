#!/bin/sh
# Install a Docker engine, compose and debootstrap from Debian's packages, where they are missing. Where
# that compose is the first one (1.29 of Debian 12), compose 2 is unpacked beside it.
set -e
for program in dockerd docker-compose debootstrap; do
  if ! PATH=$PATH:/usr/sbin command -v $program >/dev/null; then
    sh tests/harness/apt_install.sh docker.io docker-compose debootstrap
  fi
done
PATH=/usr/bin:$PATH docker compose version >/dev/null 2>&1 || sh tests/containers/unpack_compose.sh
