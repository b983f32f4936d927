#!/bin/sh
# Installs packages of the system: apt_install.sh PACKAGE... Fails if this is not root, if there is no
# apt-get, or if apt-get fails. Calls at the same time wait for each other: apt-get itself gives up
# when another one runs. No service is started: `policy-rc.d` forbids that to the packages' scripts.
set -eu

[ "$(id -u)" = 0 ] && command -v apt-get >/dev/null
exec 9>/tmp/caudal-apt-install.lock
flock 9
policy=/usr/sbin/policy-rc.d
if [ ! -e "$policy" ]; then
    trap 'rm -f "$policy"' EXIT
    trap 'exit 1' HUP INT TERM
    printf '#!/bin/sh\nexit 101\n' >"$policy"
    chmod 755 "$policy"
fi
export DEBIAN_FRONTEND=noninteractive RUNLEVEL=1
apt-get update -qq
apt-get install -y -qq --no-install-recommends -o DPkg::Lock::Timeout=300 "$@" >/dev/null
