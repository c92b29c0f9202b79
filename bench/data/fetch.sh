#!/usr/bin/env bash
# Fetches 3,000,000 departures of 2001 and writes them as JSON lines, in order of
# time, to .cache/bench/flights-3m.jsonl. They are flights-3m.parquet of
# vega-datasets (BSD-3-Clause). Does nothing when they are there. Needs Node 20
# and npm.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
cache=$(cd "$here/../.." && pwd)/.cache/bench
[ ! -e "$cache/flights-3m.jsonl" ] || exit 0
mkdir -p "$cache/data"
cp "$here"/package.json "$here"/package-lock.json "$here"/.npmrc "$here"/flights.mjs "$cache/data"
cd "$cache/data"
npm ci --silent
npm pack --silent --ignore-scripts vega-datasets@3.2.1 > /dev/null
tar -xzf vega-datasets-3.2.1.tgz package/data/flights-3m.parquet
node flights.mjs package/data/flights-3m.parquet "$cache/flights-3m.jsonl"
rm -rf package vega-datasets-3.2.1.tgz
