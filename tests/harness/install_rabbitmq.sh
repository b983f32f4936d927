#!/bin/sh
# Installs RabbitMQ for the tests if it is absent and we may; else it says so and fails. Its
# service is not started.
set -eu

if [ -x /usr/lib/rabbitmq/bin/rabbitmq-server ]; then
    exit 0
fi
sh tests/harness/apt_install.sh rabbitmq-server && exit 0
echo "RabbitMQ could not be installed: its tests will skip"
exit 1
