#!/bin/sh
# Installs Chromium and its driver for the tests if they are absent and we may; and what the page is
# built and checked with, where npm is. It says what is missing and then fails.
set -eu

missing=0
if command -v npm >/dev/null; then
    (cd web && npm install --no-save --silent >/dev/null 2>&1) || {
        echo "the packages of web/ cannot be installed: tests of the bundle and of axe will skip"
        missing=1
    }
else
    echo "node is not here: tests of the bundle and of axe will skip"
    missing=1
fi
if command -v chromium >/dev/null && command -v chromedriver >/dev/null; then
    exit $missing
fi
sh tests/harness/apt_install.sh chromium chromium-driver && exit $missing
echo "Chromium could not be installed: tests of the page will skip"
exit 1
