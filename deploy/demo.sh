#!/bin/sh
# The last act of `make demo`: a small cluster answers the books while its processes are killed.
# Ends with another status than 0 if anything fails or the answers differ.
set -eu
caudal=$1
data=$2
port=${3:-28400}

cluster=$(mktemp -d)
# Take the cluster down however this ends, and keep the status with which it ends.
clean_up() {
  status=$?
  trap - EXIT
  "$caudal" down --purge --dir "$cluster" 2>/dev/null || true
  rm -rf "$cluster"
  exit "$status"
}
trap clean_up EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

echo "A cluster: two gateways, two workers, three medics, and a broker"
"$caudal" up --dir "$cluster" --port "$port"
echo "The books again, while processes are killed and medics bring them back"
"$caudal" chaos --dir "$cluster" --kills 6 --every 2 --freeze 2>&1 | sed 's/^/    /' &
chaos=$!
"$caudal" submit books --data "$data" --batch-size 512KiB --format json \
  --gateway "http://127.0.0.1:$((port + 1)),http://127.0.0.1:$((port + 2))" > "$cluster/cluster.json"
"$caudal" run books --data "$data" --format json > "$cluster/embedded.json" 2>/dev/null
cmp "$cluster/cluster.json" "$cluster/embedded.json"
echo "The cluster's answers are those of this machine alone, byte for byte."
wait "$chaos"
"$caudal" status --dir "$cluster"
