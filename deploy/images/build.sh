#!/usr/bin/env bash
# Builds the image of a program of ours as an OCI archive, and prints the archive's path. What has
# been built before is found again.
#
#   build.sh webhook
set -euo pipefail
case ${1:-} in
  webhook) ;;
  *) echo "usage: build.sh webhook" >&2; exit 2 ;;
esac
cd "$(dirname "$0")/../.."
source gate/cache.sh
source deploy/images/archive.sh

readonly NAME=opensdn-$1
readonly DOCKERFILE=deploy/images/$1/Dockerfile
TARGET=$(uname -m)-unknown-linux-musl
readonly TARGET
readonly PROGRAM=${CARGO_TARGET_DIR:-target}/$TARGET/release/$NAME

# What a cargo that runs this script has set is not for the one that it runs: some dependencies
# are built anew when it differs.
forget_other_cargo() {
  local variable
  for variable in $(compgen -e | grep '^CARGO_' || true); do
    case $variable in
      CARGO_HOME | CARGO_TARGET_DIR | CARGO_BUILD_BUILD_DIR) ;;
      *) unset "$variable" ;;
    esac
  done
}

# The tools that make a static program.
need_static_tools() {
  [ -d "$(rustc --print sysroot)/lib/rustlib/$TARGET/lib" ] ||
    image_stop "Rust has no target $TARGET" "rustup target add $TARGET"
  need_for_images musl-gcc musl-tools
  need_for_images strip binutils
}

# As it is shipped. Cargo knows best whether there is anything to do, so it is always asked.
build_program() {
  local flags
  # Whoever calls this may hold a build folder already.
  [ -n "${CARGO_BUILD_BUILD_DIR:-}" ] || take_build_slot
  # No path of this machine in the program: the same source gives the same image elsewhere.
  flags="--remap-path-prefix=${CARGO_HOME:-$HOME/.cargo}=/cargo"
  flags+=" --remap-path-prefix=$CARGO_BUILD_BUILD_DIR=/build"
  env "CARGO_TARGET_$(tr 'a-z-' 'A-Z_' <<<"$TARGET")_RUSTFLAGS=$flags" \
    cargo build --quiet --release --target "$TARGET" --package "$NAME" --locked 8>&- >&2 ||
    image_stop "$NAME was not built"
}

revision() {
  local revision
  revision=$(git rev-parse --verify HEAD 2>/dev/null) || { echo unknown; return; }
  # What is not committed has no name.
  git diff --quiet HEAD -- . || revision=$revision-modified
  echo "$revision"
}

# Without the names of functions, which only profilers want and which are a third of it.
copy_program() { strip --strip-all -o "$1/$NAME" "$PROGRAM"; }

forget_other_cargo
need_static_tools
build_program
version=$(sed -n '/^\[workspace.package\]/,/^\[/s/^version = "\(.*\)"/\1/p' Cargo.toml)
arguments=(--build-arg "VERSION=$version" --build-arg "REVISION=$(revision)")
# Where the source is to be had, if that is a public place.
source=$(git remote get-url origin 2>/dev/null || true)
case $source in
  https://*@*) ;;
  https://*) arguments+=(--label "org.opencontainers.image.source=$source") ;;
esac
digest=$({ cat "$PROGRAM" "$DOCKERFILE" deploy/images/archive.sh; echo "${arguments[@]}"; } | digest_of)
image_archive "$NAME" "$version" "$digest" copy_program "$DOCKERFILE" "${arguments[@]}"
