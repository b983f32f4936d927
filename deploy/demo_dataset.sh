#!/bin/sh
# An act of `make demo`: load the books once, ask twice, append some reviews while a query is watched.
# Ends with another status than 0 if anything fails.
set -eu
caudal=$1
data=$2

place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

echo "A dataset: the books are read and cleaned once"
"$caudal" load books --data "$data" --to "$place/shelf"
echo "Two questions; no CSV is read"
"$caudal" run books --from "$place/shelf" -q q4
"$caudal" sql books "SELECT \"table\", reason, count(*) AS records FROM rejects GROUP BY ALL ORDER BY 3 DESC" \
  --from "$place/shelf"
echo "Some reviews are appended while q4 is watched; changed rows are marked"
"$caudal" watch books q4 --from "$place/shelf" --count 2 > "$place/watched" &
watching=$!
until [ -s "$place/watched" ]; do kill -0 "$watching"; sleep 0.2; done
{ head -n 1 "$data/Books_rating.csv"; tail -n 400 "$data/Books_rating.csv"; } > "$place/november.csv"
"$caudal" load books --file "reviews=$place/november.csv" --to "$place/shelf"
wait "$watching"
cat "$place/watched"
"$caudal" versions "$place/shelf"
