#!/usr/bin/env bash
# The gate: everything that a change must pass. Each step is one command.
#
#   test.sh          everything but the long tests on real nodes
#   test.sh lab      those, and the images that are shipped; needs root on Linux
set -euo pipefail
cd "$(dirname "$0")/.."
source gate/cache.sh
source gate/summary.sh

gate/setup.sh cluster gate ${1:+lab servers}
take_build_slot
nextest=("$OPENSDN_CACHE/tools/bin/cargo-nextest" nextest)
# Packages are selected alike everywhere, so that their dependencies have the same features and are built once.
tests=(run --workspace --locked --no-tests fail)
# Programs that tests start are those that were built with them.
export OPENSDN_PROGRAMS=$PWD/target/debug

build_all() {
  step "programs" cargo build --quiet --locked --bins
  step "build of the tests" "${nextest[@]}" "${tests[@]}" --no-run
}

# A build script that names a file that is not there has its crate, and all that need it, built anew by each step.
nothing_is_built_again() {
  local again
  again=$("${nextest[@]}" "${tests[@]}" --no-run 2>&1 | grep '^ *Compiling' || true)
  [ -z "$again" ] || {
    printf 'error: built again with nothing changed (CARGO_LOG=cargo::core::compiler::fingerprint=info says why):\n%s\n' "$again"
    return 1
  }
}

# Tests that do not disturb each other share two clusters, one with the product and one with the CRDs alone.
started=()
start_shared_clusters() {
  local what
  trap end_shared_clusters EXIT
  trap 'exit 130' INT TERM
  for what in product crds; do
    "$OPENSDN_PROGRAMS/opensdn-sandbox" up --dir "$PWD/target/test-$what" "--$what" >/dev/null 8>&- || return
    started+=("$what")
  done
  export OPENSDN_TEST_SANDBOX=$PWD/target/test-product OPENSDN_TEST_CRDS_SANDBOX=$PWD/target/test-crds
}

end_shared_clusters() {
  local what
  for what in "${started[@]}"; do
    "$OPENSDN_PROGRAMS/opensdn-sandbox" down --dir "$PWD/target/test-$what" >/dev/null 2>&1 || true
  done
  started=()
}

has_lab() {
  "$OPENSDN_PROGRAMS/opensdn-sandbox" lab-check 8>&-
}

if [ "${1:-}" = lab ]; then
  build_all
  record_sources
  has_lab || exit 1
  tests "tests on real nodes" "${nextest[@]}" "${tests[@]}" -E 'test(/^(lab_|images::)/)'
  tests "all writes, waves and cases" env OPENSDN_LONG_RUNS=1 \
    "${nextest[@]}" "${tests[@]}" -E 'package(opensdn-tests) and test(/^(same_verdict|operator_(upgrade_|scale_)?faults|operator_storage|operator_upgrade_bad_images)::/) or test(/^campaign::sequences::/)'
  tests "isolation over a million evaluations" env OPENSDN_ISOLATION_ROUNDS=333334 \
    "${nextest[@]}" "${tests[@]}" -E 'test(/^nothing_of_one_evaluation_is_visible_in_the_next$/)'
  finish
  exit
fi

# Warnings are errors here and only here, so that work in progress is not held up.
step "format" cargo fmt --all --check
step "lints" cargo clippy --quiet --workspace --all-targets --locked -- -D warnings
step "documentation" env RUSTDOCFLAGS="-D warnings" cargo doc --quiet --workspace --no-deps --locked
# Not advisories: their database is on a host that CI may not reach.
step "licences, sources, versions" "$OPENSDN_CACHE/tools/bin/cargo-deny" --locked check --hide-inclusion-graph bans licenses sources
step "book" "$OPENSDN_CACHE/tools/bin/mdbook" build docs
build_all
step "nothing is built again" nothing_is_built_again
record_sources

# Real nodes need root on Linux. The long runs on them are `make test-lab`.
left_out="left out: the long tests on real nodes, the images as shipped (make test-lab)"
# Where they do not start, each test starts its own and says why it cannot.
start_shared_clusters || echo "started no shared clusters: each test starts its own"
# What compiles takes all cores for minutes, and beside it a control plane of a test would not answer in time.
apart='not package(opensdn-tests) or test(/^(reproducible|guide|policy_author)::/)'
short='not test(/^(lab_|images::)/)'
tests "tests without a cluster" "${nextest[@]}" "${tests[@]}" -E "($apart) and $short"
tests "tests" "${nextest[@]}" "${tests[@]}" -E "not ($apart) and $short"
end_shared_clusters
# By itself: three nodes and a control plane need both cores, and have time limits of their own.
if has_lab; then
  tests "short run on real nodes" "${nextest[@]}" "${tests[@]}" -E 'test(/^lab_short::/)'
else
  left_out="left out: all tests on real nodes (make setup-lab says what they need)"
fi
tests "examples in the documentation" cargo test --quiet --locked --workspace --doc
finish "$left_out"
