#!/usr/bin/env bash
# The benchmarks, built as they are shipped. Their results are numbers, not a verdict.
set -euo pipefail
cd "$(dirname "$0")/.."
source gate/cache.sh

readonly OHA=1.16.0

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
# Requests that are due at a time and not when the last one is answered. In a folder of its own: its build is
# none of ours.
oha=$OPENSDN_CACHE/tools/bin/oha
[ -x "$oha" ] || {
  echo "bench: building oha $OHA (about 4 min, once)" >&2
  env -u CARGO_BUILD_BUILD_DIR cargo install --quiet --locked --root "$OPENSDN_CACHE/tools" \
    --target-dir "$OPENSDN_CACHE/build/oha" "oha@$OHA" && rm -rf "$OPENSDN_CACHE/build/oha"
}
export PATH=$OPENSDN_CACHE/tools/bin:$PATH
take_build_slot
cargo bench --locked --package opensdn-tests 8>&-
