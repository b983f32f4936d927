#!/bin/sh
# Installs Java for Spark from the system's packages, if it is missing and we may. Never fails.
command -v java >/dev/null 2>&1 && exit 0
if [ "$(id -u)" != 0 ] || ! command -v apt-get >/dev/null 2>&1; then
  echo "no Java here: the tests of the Spark engine will skip"
  exit 0
fi
apt-get install -y -qq default-jre-headless >/dev/null 2>&1 \
  || { apt-get update -qq && apt-get install -y -qq default-jre-headless; } >/dev/null 2>&1 \
  || echo "Java cannot be installed here: the tests of the Spark engine will skip"
