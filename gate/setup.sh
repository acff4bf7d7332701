#!/usr/bin/env bash
# Installs what building and testing needs. Says in one line per step what it does and how
# long that takes; a step whose work is done says nothing and takes no time.
#
#   setup.sh                  everything
#   setup.sh --without-gate   what building and a sandbox need
#   setup.sh --with-lab       and what real nodes need
set -euo pipefail
cd "$(dirname "$0")/.."
source gate/cache.sh

readonly CARGO_DENY=0.20.2
readonly MDBOOK=0.5.4
readonly TOOLS=$OPENSDN_CACHE/tools

step() { echo "setup: $*" >&2; }
stop() { # stop WHAT COMMAND
  echo "setup: cannot go on: $1. This would help:" >&2
  echo "    $2" >&2
  exit 1
}

need() { # need PROGRAM COMMAND-THAT-INSTALLS-IT
  command -v "$1" >/dev/null || stop "there is no $1" "$2"
}

has_component() { # has_component NAME FILE
  [ -e "$(rustc --print sysroot)/bin/$2" ]
}

add_with_rustup() { # add_with_rustup KIND NAME
  command -v rustup >/dev/null || stop "Rust has no $1 $2, and there is no rustup to add it" \
    "curl --proto '=https' --tlsv1.2 -sSf https://sh.rustup.rs | sh"
  step "adding the Rust $1 $2 (about 20 s, once)"
  rustup --quiet "$1" add "$2" || stop "rustup did not add $2" "rustup $1 add $2"
}

rust() {
  need cargo "curl --proto '=https' --tlsv1.2 -sSf https://sh.rustup.rs | sh"
  local wanted have
  wanted=$(sed -n 's/^rust-version = "\(.*\)"/\1/p' Cargo.toml)
  have=$(rustc --version | cut -d' ' -f2)
  if [ "$(printf '%s\n' "$wanted" "$have" | sort -V | head -1)" != "$wanted" ]; then
    stop "Rust $have is older than $wanted" "rustup update stable"
  fi
  has_component rustfmt cargo-fmt || add_with_rustup component rustfmt
  has_component clippy cargo-clippy || add_with_rustup component clippy
  # Policies are WebAssembly.
  [ -d "$(rustc --print sysroot)/lib/rustlib/wasm32-unknown-unknown/lib" ] ||
    add_with_rustup target wasm32-unknown-unknown
}

cargo_deny() {
  [ "$("$TOOLS/bin/cargo-deny" --version 2>/dev/null)" = "cargo-deny $CARGO_DENY" ] && return
  step "building cargo-deny $CARGO_DENY, which checks licences (about 5 min, once)"
  cargo install --quiet --locked "cargo-deny@$CARGO_DENY" --root "$TOOLS" >&2 ||
    stop "cargo-deny was not built" "cargo install --locked cargo-deny@$CARGO_DENY --root $TOOLS"
}

mdbook() {
  [ "$("$TOOLS/bin/mdbook" --version 2>/dev/null)" = "mdbook v$MDBOOK" ] && return
  step "building mdbook $MDBOOK, which makes the book (about 2 min, once)"
  cargo install --quiet --locked --no-default-features "mdbook@$MDBOOK" --root "$TOOLS" >&2 ||
    stop "mdbook was not built" "cargo install --locked --no-default-features mdbook@$MDBOOK --root $TOOLS"
}

# What standard input says, and before its first line what it is about. Go names every module that
# it fetches: that is left out.
announced() { # announced WHAT
  local line said=
  while IFS= read -r line; do
    case $line in "go: downloading "*) continue ;; esac
    [ -n "$said" ] || step "$1"
    said=yes
    echo "$line" >&2
  done
}

built() { # built SUBJECT WHAT MINUTES
  tests/control-plane/build.sh "$1" 2>&1 >/dev/null |
    announced "building $2 from its source (about $3 min, once)" ||
    stop "$2 was not built" "tests/control-plane/build.sh $1"
}

# Ready programs are given by KUBEBUILDER_ASSETS, kwok only if it is among them.
control_plane() { # control_plane VERSION
  [ -n "${KUBEBUILDER_ASSETS:-}" ] || built "$1" "Kubernetes $1" 6
  [ -n "${KUBEBUILDER_ASSETS:-}" ] && [ -x "$KUBEBUILDER_ASSETS/kwok" ] || built kwok kwok 1
}

# Real nodes and images for them are for root on a machine with apt; elsewhere the lab's tests are
# left out, and `opensdn-sandbox lab-check` says why.
is_root_with_apt() { [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; }

# Installs the packages whose file, named beside them on standard input, is missing.
debian_packages() { # debian_packages WHAT-FOR
  local file package said missing=()
  while read -r file package; do
    [ -e "$file" ] || missing+=("$package")
  done
  [ "${#missing[@]}" != 0 ] || return 0
  step "installing ${missing[*]} for $1 (about 30 s, once)"
  said=$({ apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq \
    --no-install-recommends "${missing[@]}"; } 2>&1) || {
    tail -n 5 <<<"$said" >&2
    step "apt-get did not install them: going on without $1"
    return 1
  }
}

lab() {
  is_root_with_apt || return 0
  debian_packages "real nodes" <<'EOT' || return 0
/usr/bin/containerd containerd
/usr/sbin/runc runc
/usr/lib/cni/bridge containernetworking-plugins
/usr/sbin/iptables iptables
/usr/sbin/conntrack conntrack
/usr/sbin/ipset ipset
/usr/sbin/ip iproute2
/usr/bin/busybox busybox-static
/usr/sbin/mkfs.ext4 e2fsprogs
/usr/bin/buildah buildah
EOT
  built 1.35-nodes "the programs of Kubernetes' nodes" 2
  built coredns CoreDNS 1
}

# Images hold static programs.
static_programs() {
  is_root_with_apt || return 0
  debian_packages images <<'EOT' || return 0
/usr/bin/musl-gcc musl-tools
/usr/bin/buildah buildah
EOT
  local target
  target=$(uname -m)-unknown-linux-musl
  [ -d "$(rustc --print sysroot)/lib/rustlib/$target/lib" ] || add_with_rustup target "$target"
}

compiler() {
  command -v cc >/dev/null || stop "there is no C compiler, which Rust links with" \
    "sudo apt-get install -y gcc libc6-dev"
}

compiler
rust
control_plane "${OPENSDN_KUBERNETES:-1.35}"
case ${1:-} in
  "" | --with-lab) lab && static_programs ;;
esac
# Only the gate needs them.
[ -n "${1:-}" ] || { cargo_deny && mdbook; }
