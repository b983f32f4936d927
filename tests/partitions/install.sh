#!/bin/sh
# What `make partitions` needs beside RabbitMQ: ip and nsenter, and a compiler for the wrong clock.
set -e
for program in ip nsenter cc sysctl; do
  command -v $program >/dev/null && continue
  apt-get update -q >/dev/null
  apt-get install -y -q --no-install-recommends iproute2 util-linux gcc libc6-dev procps >/dev/null
done
