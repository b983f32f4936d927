#!/bin/sh
# Unpack compose 2 into .venv/compose, from the package of Debian 13, which asks for nothing that Debian 12
# lacks. It is not installed, so this system keeps to its release. apt fetches it from where this machine
# has its own packages, and checks it by Debian's keys. Where that fails, one line says so.
set -u
target=.venv/compose
keys=/usr/share/keyrings/debian-archive-keyring.gpg

[ ! -x $target/docker-compose ] || exit 0
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# An apt whose lists and cache are in $work.
apt() {
  apt-get -qq -o APT::Sandbox::User=root -o Dir::Etc::SourceList="$work/sources.list" \
    -o Dir::Etc::SourceParts=/dev/null -o Dir::State::Lists="$work/lists" -o Dir::Cache="$work/cache" "$@"
}

unpack() {
  # shellcheck disable=SC2016  # apt fills that in
  place=$(apt-get indextargets --format '$(REPO_URI)' \
    'Created-By: Packages' 'Label: Debian' 'Component: main' | head -n 1)
  [ -n "$place" ] || { echo "this apt has no packages of Debian" >&2; return 1; }
  mkdir -p "$work/lists/partial" "$work/cache/archives/partial" $target
  echo "deb [signed-by=$keys] $place trixie main" >"$work/sources.list"
  apt update && (cd "$work" && apt download docker-compose) || return 1
  dpkg-deb -x "$work"/docker-compose_*.deb "$work/tree" &&
    mv "$work/tree/usr/libexec/docker/cli-plugins/docker-compose" $target/ &&
    $target/docker-compose version
}

unpack || {
  rm -f $target/docker-compose
  echo "no compose 2 here: tests that need it skip (package docker-compose of Debian 13)" >&2
}
