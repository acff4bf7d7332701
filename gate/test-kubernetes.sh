#!/usr/bin/env bash
# The tests that run against a control plane, against another version of it.
set -euo pipefail
cd "$(dirname "$0")/.."
source gate/cache.sh
source gate/summary.sh

known=$(cd tests/control-plane && echo [0-9]*)
[ -n "${1:-}" ] || {
  echo "usage: make test-kubernetes VERSION=…, one of: $known" >&2
  exit 2
}
export OPENSDN_KUBERNETES=$1
# Given programs would be used regardless of the version.
unset KUBEBUILDER_ASSETS
gate/setup.sh cluster gate
take_build_slot
export OPENSDN_PROGRAMS=$PWD/target/debug
step "programs" cargo build --quiet --locked --bins
# Kubelets are pinned with one version only, so the lab is left out.
tests "tests with Kubernetes $1" "$OPENSDN_CACHE/tools/bin/cargo-nextest" nextest run --workspace --locked --no-tests fail \
  -E 'package(opensdn-tests) and not test(/^(lab_|images::)/)'
finish
