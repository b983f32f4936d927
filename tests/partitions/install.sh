#!/bin/sh
# What `make partitions` needs beside RabbitMQ: ip and nsenter, and a compiler for the wrong clock.
set -e
for program in ip nsenter cc sysctl; do
  command -v $program >/dev/null && continue
  sh tests/harness/apt_install.sh iproute2 util-linux gcc libc6-dev procps
done
