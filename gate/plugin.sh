#!/usr/bin/env bash
# The kubectl plugin as it is shipped, in target/kubectl-opensdn. Needs neither Go nor a control plane.
set -euo pipefail
cd "$(dirname "$0")/.."
source gate/cache.sh
source gate/revision.sh

gate/setup.sh
take_build_slot

# Sources without git have no commit, and are built all the same.
commit=$(revision)
[ "$commit" = unknown ] || export OPENSDN_COMMIT=$commit

echo "building kubectl-opensdn (the first time about seven minutes, then seconds)"
cargo build --quiet --locked --release --package kubectl-opensdn 8>&-
install -m 755 target/release/kubectl-opensdn target/kubectl-opensdn
echo "target/kubectl-opensdn is built. Put it into a folder of your PATH:"
echo "    install -D target/kubectl-opensdn ~/.local/bin/kubectl-opensdn && kubectl opensdn version"
