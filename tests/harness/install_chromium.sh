#!/bin/sh
# Installs Chromium and its driver for the tests if they are absent and we may; and what the page is
# built and checked with, where npm is.
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
sh tests/harness/apt_install.sh chromium chromium-driver ||
    echo "Chromium could not be installed: tests of the page will skip"
