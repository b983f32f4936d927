#!/bin/sh
# Installs Chromium and its driver for the tests if they are absent, this is root, and there is
# apt-get; and what the page is built and checked with, where npm is.
set -eu

if command -v npm >/dev/null; then
    (cd web && npm install --no-save --silent >/dev/null 2>&1) ||
        echo "the packages of web/ cannot be installed: tests of the bundle and of axe will skip"
else
    echo "node is not here: tests of the bundle and of axe will skip"
fi
if command -v chromium >/dev/null && command -v chromedriver >/dev/null; then
    exit 0
fi
if [ "$(id -u)" != 0 ] || ! command -v apt-get >/dev/null; then
    echo "Chromium is not here and cannot be installed: tests of the page will skip"
    exit 0
fi
export DEBIAN_FRONTEND=noninteractive
apt-get update -qq &&
    apt-get install -y -qq --no-install-recommends chromium chromium-driver >/dev/null ||
    echo "Chromium could not be installed: tests of the page will skip"
