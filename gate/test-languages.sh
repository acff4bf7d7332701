#!/usr/bin/env bash
# Begins a policy in each language, builds it, runs its cases, and measures it, as an author would:
# in a folder outside of this repository, with nothing but the program and the language's own tools.
#   gate/test-languages.sh [rust|javascript|python|c ...]
set -euo pipefail
cd "$(dirname "$0")/.."
source gate/cache.sh
source gate/summary.sh

readonly LANGUAGES=("${@:-rust javascript python c}")
readonly WORK=$OPENSDN_CACHE/languages
readonly KINDS=Manager,example.com/v1/Database

stop() { # stop WHAT COMMAND
  echo "test-languages: cannot go on: $1. This would help:" >&2
  echo "    $2" >&2
  exit 1
}

need() { # need PROGRAM DEBIAN-PACKAGES
  command -v "$1" >/dev/null || stop "there is no $1" "apt-get install -y --no-install-recommends $2"
}

tools() { # tools LANGUAGE
  case $1 in
    rust) ;;
    javascript) need node nodejs && need npm npm && need make make ;;
    python) need python3 python3-venv && need make make
      python3 -c 'import ensurepip' 2>/dev/null || stop "python3 cannot make a venv" "apt-get install -y python3-venv" ;;
    c) need clang clang && need wasm-ld lld && need make make ;;
    *) stop "$1 is not a language of the templates" "gate/test-languages.sh rust javascript python c" ;;
  esac
}

# Starts the project from scratch, but keeps what the language's tools installed in it, as long as they
# are asked for the same.
begin() { # begin LANGUAGE PROJECT
  local new=$WORK/new kept
  rm -rf "$new"
  kubectl-opensdn policy new no-owner --lang "$1" --kinds "$KINDS" --dir "$new" || return
  for kept in node_modules .venv target; do
    if [ -e "$2/$kept" ] && same_tools "$2" "$new"; then
      mv "$2/$kept" "$new/$kept"
      # A file that has just been written is newer than what was installed by it.
      find "$new/$kept" -maxdepth 1 \( -name installed -o -name .installed \) -exec touch {} +
    fi
  done
  rm -rf "$2" && mv "$new" "$2"
}

same_tools() { # same_tools OLD NEW
  local file
  for file in package-lock.json requirements.txt Makefile; do
    [ ! -e "$2/$file" ] || cmp --silent "$1/$file" "$2/$file" || return 1
  done
}

build() { # build PROJECT
  (cd "$1" && kubectl-opensdn policy build)
}

run_cases() { # run_cases PROJECT
  (cd "$1" && kubectl-opensdn policy test)
}

# The same source in another folder gives the same bytes, where that is promised.
same_bytes() { # same_bytes PROJECT
  local other=$WORK/elsewhere/no-owner
  rm -rf "$WORK/elsewhere/no-owner"
  mkdir -p "$WORK/elsewhere"
  kubectl-opensdn policy new no-owner --kinds "$KINDS" --dir "$other" || return
  cp "$1/Cargo.lock" "$other/Cargo.lock"
  (cd "$other" && CARGO_TARGET_DIR=$WORK/elsewhere/target kubectl-opensdn policy build) || return
  cmp "$1/build/no-owner.wasm" "$other/build/no-owner.wasm"
}

measure() { # measure LANGUAGE PROJECT
  printf '%-12s %9s bytes\n' "$1" "$(stat -c %s "$2/build/no-owner.wasm")"
  (cd "$2" && kubectl-opensdn policy bench -f "$WORK/object.yaml")
}

mkdir -p "$WORK"
printf 'apiVersion: example.com/v1\nkind: Database\nmetadata: {name: example, labels: {app: example}}\n' >"$WORK/object.yaml"
read -ra languages <<<"${LANGUAGES[*]}"
for language in "${languages[@]}"; do tools "$language"; done
gate/setup.sh
take_build_slot
step "kubectl-opensdn" cargo build --quiet --locked --package kubectl-opensdn
PATH=$PWD/target/debug:$PATH
# What the projects build is theirs.
unset CARGO_BUILD_BUILD_DIR
for language in "${languages[@]}"; do
  project=$WORK/$language
  step "$language: new" begin "$language" "$project"
  step "$language: build" build "$project"
  step "$language: test" run_cases "$project"
  [ "$language" != rust ] || step "$language: same bytes elsewhere" same_bytes "$project"
done
if [ "${#failed_steps[@]}" = 0 ]; then
  for language in "${languages[@]}"; do measure "$language" "$WORK/$language"; done
fi
[ "${#failed_steps[@]}" = 0 ] || { echo "failed: ${failed_steps[*]}"; exit 1; }
