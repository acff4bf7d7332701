# Makes the image of a program of this workspace: one static program and nothing else; and beside the
# archive what goes with it: a bill of materials (`.cdx.json`) and the provenance of its files
# (`.provenance.json`). Sourced, after gate/cache.sh and deploy/images/archive.sh.
PROGRAM_TARGET=$(uname -m)-unknown-linux-musl
readonly PROGRAM_TARGET
source gate/revision.sh

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

# As it is shipped. Cargo knows best whether there is anything to do, so it is always asked. What it says
# of what it compiled goes to the file MESSAGES.
build_program() { # build_program NAME MESSAGES
  local flags
  # The caller may hold a build folder already.
  [ -n "${CARGO_BUILD_BUILD_DIR:-}" ] || take_build_slot
  # No path of this machine in the program: the same source gives the same image elsewhere.
  flags="--remap-path-prefix=${CARGO_HOME:-$HOME/.cargo}=/cargo"
  flags+=" --remap-path-prefix=$CARGO_BUILD_BUILD_DIR=/build"
  # Pointers that the program fixes as it starts are listed in bits instead of 24 bytes each
  # (1.7 MB): musl understands that since 1.2.4.
  flags+=" -Clink-arg=-Wl,-z,pack-relative-relocs"
  # Generics that several crates use would be in it once for each (6 MB).
  env CARGO_PROFILE_RELEASE_LTO=fat "CARGO_TARGET_$(tr 'a-z-' 'A-Z_' <<<"$PROGRAM_TARGET")_RUSTFLAGS=$flags" \
    cargo build --quiet --release --target "$PROGRAM_TARGET" --package "$1" --locked \
    --message-format json-render-diagnostics 8>&- >"$2" ||
    image_stop "$1 was not built"
}

# Writes the records of an image; `deploy/records` says what they are.
image_records() { # image_records ARGUMENT...
  cargo run --quiet --locked --package opensdn-image-records -- "$@" 8>&- >&2 ||
    image_stop "the records of the image were not written"
}

# Without the names of functions, which only profilers want and which are a third of it; with the list of
# what is linked into it, where scanners look for it.
copy_program() { # copy_program FOLDER
  local program
  program=$1/$(basename "$BUILT_PROGRAM")
  strip --strip-all -o "$program" "$BUILT_PROGRAM" &&
    objcopy --add-section ".dep-v0=$RECORDS/section" "$program"
}

# Prints the path of the archive. The image may have another name than its program.
program_archive() { # program_archive PROGRAM IMAGE DOCKERFILE
  local version digest source archive
  local -a arguments
  forget_other_cargo
  need_static_tools
  RECORDS=$(mktemp -d)
  readonly RECORDS
  trap 'rm -rf "$RECORDS"' EXIT
  build_program "$1" "$RECORDS/built"
  readonly BUILT_PROGRAM=${CARGO_TARGET_DIR:-target}/$PROGRAM_TARGET/release/$1
  image_records bill --package "$1" --target "$PROGRAM_TARGET" --built "$RECORDS/built" \
    --section "$RECORDS/section" --out "$RECORDS/bill"
  version=$(sed -n '/^\[workspace.package\]/,/^\[/s/^version = "\(.*\)"/\1/p' Cargo.toml)
  arguments=(--build-arg "VERSION=$version" --build-arg "REVISION=$(revision)")
  # Where the source is to be had, if that is a public place.
  source=$(git remote get-url origin 2>/dev/null || true)
  case $source in
    https://*@*) source= ;;
    https://*) arguments+=(--label "org.opencontainers.image.source=$source") ;;
    *) source= ;;
  esac
  digest=$({
    cat "$BUILT_PROGRAM" "$RECORDS/bill" "$3" deploy/images/archive.sh deploy/images/program.sh
    echo "${arguments[@]}"
  } | digest_of)
  archive=$(image_archive "$2" "$version" "$digest" copy_program "$3" "${arguments[@]}")
  keep_records "$1" "${archive%.tar}" ${source:+--source "$source"}
  echo "$archive"
}

# Beside the archive, under its name. They are the same each time, so that they are always written.
keep_records() { # keep_records PROGRAM PATH ARGUMENT...
  local program=$1 path=$2
  shift 2
  install -m 644 "$RECORDS/bill" "$path.cdx.json"
  copy_program "$RECORDS"
  tar -xOf "$path.tar" index.json >"$RECORDS/index.json"
  image_records provenance --package "$program" --program "$RECORDS/$program" --archive "$path.tar" \
    --index "$RECORDS/index.json" --bill "$path.cdx.json" --target "$PROGRAM_TARGET" \
    --revision "$(revision)" --tool "$(rustc --version)" --tool "$(buildah --version)" "$@" \
    --out "$path.provenance.json"
}
