#!/bin/sh
# Installs Java for Spark from the system's packages, if it is missing and we may; else it says so and
# fails.
command -v java >/dev/null 2>&1 && exit 0
sh tests/harness/apt_install.sh default-jre-headless && exit 0
echo "Java could not be installed: the tests of the Spark engine will skip"
exit 1
