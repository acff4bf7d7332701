#!/usr/bin/env bash
# The benchmarks, built as they are shipped. Their results are numbers, not a verdict.
set -euo pipefail
cd "$(dirname "$0")/.."
source gate/cache.sh

compgen -G 'tests/benches/*.rs' >/dev/null || {
  echo "bench: there are no benchmarks in tests/benches yet" >&2
  exit 1
}
gate/setup.sh --without-gate
take_build_slot
cargo bench --locked --package opensdn-tests 8>&-
