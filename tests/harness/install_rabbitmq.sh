#!/bin/sh
# Installs RabbitMQ for the tests if it is absent, this is root, and there is apt-get.
# Its service is not started: `policy-rc.d` forbids that to the package's scripts meanwhile.
set -eu

if [ -x /usr/lib/rabbitmq/bin/rabbitmq-server ]; then
    exit 0
fi
if [ "$(id -u)" != 0 ] || ! command -v apt-get >/dev/null; then
    echo "RabbitMQ is not here and cannot be installed: its tests will skip"
    exit 0
fi

policy=/usr/sbin/policy-rc.d
if [ ! -e "$policy" ]; then
    trap 'rm -f "$policy"' EXIT
    trap 'exit 1' HUP INT TERM
    printf '#!/bin/sh\nexit 101\n' >"$policy"
    chmod 755 "$policy"
fi
export DEBIAN_FRONTEND=noninteractive RUNLEVEL=1
apt-get update -qq &&
    apt-get install -y -qq --no-install-recommends rabbitmq-server >/dev/null ||
    echo "RabbitMQ could not be installed: its tests will skip"
