# Makes the image of a program of this workspace: one static program and nothing else. Sourced,
# after gate/cache.sh and deploy/images/archive.sh.
PROGRAM_TARGET=$(uname -m)-unknown-linux-musl
readonly PROGRAM_TARGET

# What a cargo that runs this script has set is not for the one that it runs: some dependencies
# are built again when it differs.
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
  [ -d "$(rustc --print sysroot)/lib/rustlib/$PROGRAM_TARGET/lib" ] ||
    image_stop "Rust has no target $PROGRAM_TARGET" "rustup target add $PROGRAM_TARGET"
  need_for_images musl-gcc musl-tools
  need_for_images strip binutils
}

# As it is shipped. Cargo knows best whether there is anything to do, so it is always asked.
build_program() { # build_program NAME
  local flags
  # The caller may hold a build folder already.
  [ -n "${CARGO_BUILD_BUILD_DIR:-}" ] || take_build_slot
  # No path of this machine in the program: the same source gives the same image elsewhere.
  flags="--remap-path-prefix=${CARGO_HOME:-$HOME/.cargo}=/cargo"
  flags+=" --remap-path-prefix=$CARGO_BUILD_BUILD_DIR=/build"
  # Pointers that the program fixes as it starts are listed in bits instead of 24 bytes each
  # (1.7 MB): musl understands that since 1.2.4.
  flags+=" -Clink-arg=-Wl,-z,pack-relative-relocs"
  env "CARGO_TARGET_$(tr 'a-z-' 'A-Z_' <<<"$PROGRAM_TARGET")_RUSTFLAGS=$flags" \
    cargo build --quiet --release --target "$PROGRAM_TARGET" --package "$1" --locked 8>&- >&2 ||
    image_stop "$1 was not built"
}

revision() {
  local revision
  revision=$(git rev-parse --verify HEAD 2>/dev/null) || { echo unknown; return; }
  # What is not committed has no name.
  git diff --quiet HEAD -- . || revision=$revision-modified
  echo "$revision"
}

# Without the names of functions, which only profilers want and which are a third of it.
copy_program() { strip --strip-all -o "$1/$(basename "$BUILT_PROGRAM")" "$BUILT_PROGRAM"; }

# Prints the path of the archive. The image may have another name than its program.
program_archive() { # program_archive PROGRAM IMAGE DOCKERFILE
  local version digest source
  local -a arguments
  forget_other_cargo
  need_static_tools
  build_program "$1"
  readonly BUILT_PROGRAM=${CARGO_TARGET_DIR:-target}/$PROGRAM_TARGET/release/$1
  version=$(sed -n '/^\[workspace.package\]/,/^\[/s/^version = "\(.*\)"/\1/p' Cargo.toml)
  arguments=(--build-arg "VERSION=$version" --build-arg "REVISION=$(revision)")
  # Where the source is to be had, if that is a public place.
  source=$(git remote get-url origin 2>/dev/null || true)
  case $source in
    https://*@*) ;;
    https://*) arguments+=(--label "org.opencontainers.image.source=$source") ;;
  esac
  digest=$({ cat "$BUILT_PROGRAM" "$3" deploy/images/archive.sh; echo "${arguments[@]}"; } | digest_of)
  image_archive "$2" "$version" "$digest" copy_program "$3" "${arguments[@]}"
}
