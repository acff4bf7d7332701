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
# The lab's tests need root on Linux; without it they are left out, and counted. They wait for nodes to
# be missed and leases to end, so the others run meanwhile, and the image is built.
tests=(cargo test --locked --no-fail-fast)
if cargo run --quiet --locked --package opensdn-testing --bin opensdn-sandbox 8>&- -- lab-check; then
  lab_is_tested=yes
  run_tests_beside "${tests[@]}" --package opensdn-tests --test system -- images::
  run_tests_beside "${tests[@]}" --package opensdn-tests --test system -- lab_
fi
run_tests_and_finish "${tests[@]}" --workspace -- --skip lab_ --skip images::
