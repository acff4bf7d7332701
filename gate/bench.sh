#!/usr/bin/env bash
# The benchmarks, built as they are shipped. Their results are numbers, not a verdict.
set -euo pipefail
cd "$(dirname "$0")/.."
source gate/cache.sh

compgen -G 'tests/benches/*.rs' >/dev/null || {
  echo "bench: there are no benchmarks in tests/benches yet" >&2
  exit 1
}
gate/setup.sh cluster
[ "$(id -u)" != 0 ] || gate/setup.sh lab
# The load comes from a program that is not ours.
command -v wrk >/dev/null || {
  { [ "$(id -u)" = 0 ] && apt-get update -qq >/dev/null 2>&1 && apt-get install -y -qq wrk >/dev/null 2>&1; } || {
    echo "bench: there is no wrk, which sends the load. This would help:" >&2
    echo "    sudo apt-get install -y wrk" >&2
    exit 1
  }
}
take_build_slot
cargo bench --locked --package opensdn-tests 8>&-
