#!/usr/bin/env bash
# The pages in a browser, first over a stand-in and then over the demo, and the
# GraphQL-over-HTTP audits. Needs Node, npm and Debian's chromium, which it
# installs where apt-get may.
set -euo pipefail
cd "$(dirname "$0")/.."

if ! command -v chromium > /dev/null; then
  echo "installing chromium"
  apt-get update -qq
  DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends chromium > /dev/null
fi

cd web/app
[ -d node_modules ] || npm ci --no-audit --no-fund
npm test

state=$(mktemp -d)
port=$((20000 + RANDOM % 20000))
../../bin/flights demo --state "$state" --rate max --listen "127.0.0.1:$port" > "$state/log" 2>&1 &
demo=$!
trap 'kill $demo 2> /dev/null || true; wait $demo 2> /dev/null || true; rm -rf "$state"' EXIT
for i in $(seq 1 240); do
  if curl -fs "http://127.0.0.1:$port/readyz" > /dev/null; then break; fi
  kill -0 $demo 2> /dev/null || { cat "$state/log"; exit 1; }
  [ "$i" -lt 240 ] || { echo "the demo does not become ready"; cat "$state/log"; exit 1; }
  sleep 0.25
done
BASE_URL="http://127.0.0.1:$port" npm test
