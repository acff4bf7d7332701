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

# A static program runs on any Linux; another needs the C library of this machine, or a newer one.
target=$(uname -m)-unknown-linux-musl
arguments=() built=target/release/kubectl-opensdn kind="It needs the C library of this machine, or a newer one"
if command -v musl-gcc >/dev/null && [ -d "$(rustc --print sysroot)/lib/rustlib/$target/lib" ]; then
  arguments=(--target "$target") built=target/$target/release/kubectl-opensdn kind="It is static, and runs on any Linux"
else
  kind+="; for one that runs on any Linux: apt-get install musl-tools && rustup target add $target && make plugin"
fi

echo "building kubectl-opensdn (the first time about five minutes, then seconds)"
# Its names are a sixth of it, and who installs a plugin waits for it.
cargo rustc --quiet --locked --release --package kubectl-opensdn --bin kubectl-opensdn "${arguments[@]}" -- -C strip=symbols 8>&-
install -m 755 "$built" target/kubectl-opensdn
echo "target/kubectl-opensdn is built. $kind."
echo "Put it into a folder of your PATH:"
echo "    install -D target/kubectl-opensdn ~/.local/bin/kubectl-opensdn && kubectl opensdn version"
