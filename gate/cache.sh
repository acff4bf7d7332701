# Where everything that can be made again is kept, outside the clone, so that a fresh clone
# on a machine that has built before starts warm. Sourced by the scripts beside it, with the
# clone's root as the current folder.
OPENSDN_CACHE=${XDG_CACHE_HOME:-$HOME/.cache}/opensdn

# What runs on this machine is never asked through a proxy.
NO_PROXY=${NO_PROXY:-${no_proxy:-}}
export NO_PROXY=${NO_PROXY:+$NO_PROXY,}localhost,127.0.0.1,::1
export no_proxy=$NO_PROXY

# Gives this run a build folder of its own until it ends: a second run at the same time takes
# the next one. File descriptor 8 is the lock; processes that outlive the run must not inherit it,
# so commands are run with 8>&-.
take_build_slot() {
  local number slot
  mkdir -p "$OPENSDN_CACHE/build"
  for number in 1 2 3 4 5 6 7 8; do
    slot=$OPENSDN_CACHE/build/slot-$number
    exec 8>"$slot.lock"
    if flock --nonblock 8; then
      adopt_build_slot "$slot"
      export CARGO_BUILD_BUILD_DIR=$slot OPENSDN_POLICY_MODULES=$slot/modules
      # What rustc keeps so as to compile a part of a crate the next time is of no use in another folder, and here it
      # was a quarter of what the workspace takes, and six gigabytes.
      export CARGO_INCREMENTAL=0
      return
    fi
  done
  echo "gate: eight runs hold all build folders in $OPENSDN_CACHE/build; wait for one to end" >&2
  exit 1
}

# Cargo names what it builds from a workspace by paths relative to its root, and calls it fresh when
# no source is newer, so what another clone left would pass as ours. A slot therefore records what its
# last build was made of: each file's content, as git's hash, and the time that the file had
# (`record_sources`). In another clone files of that content get that time and all others the present
# one, so that cargo builds what differs and nothing else. Without a record everything of the
# workspace is built again; dependencies stay.
adopt_build_slot() { # adopt_build_slot FOLDER
  local slot=$1 owner
  owner="$PWD $(stat -c '%d:%i:%W' .)"
  mkdir -p "$slot"
  if [ "$(cat "$slot/owner" 2>/dev/null)" != "$owner" ]; then
    [ ! -s "$slot/owner" ] || forget_paths_of "$slot" "$(sed 's/ [^ ]*$//' "$slot/owner")"
    rm -f "$slot/owner"
    [ -s "$slot/sources" ] && is_clean_checkout || {
      forget_workspace "$slot"
      : >"$slot/sources"
    }
    ! is_clean_checkout || restore_times "$slot/sources"
    echo "$owner" >"$slot/owner"
  fi
  # Until this run has built: the sources of an interrupted build are unknown.
  rm -f "$slot/sources"
}

# Call it when all that a script builds is built. What is edited meanwhile is not recorded, and then the
# next clone builds the workspace again.
record_sources() {
  if is_clean_checkout; then
    tracked | while read -r hash path; do
      printf '%s %s %s\n' "$hash" "$(stat -c %.9Y "$path")" "$path"
    done >"$CARGO_BUILD_BUILD_DIR/sources"
  fi
}

is_clean_checkout() {
  [ -e .git ] && [ -z "$(git status --porcelain 2>&1)" ]
}

# `HASH PATH` of every file and folder of the checkout; a folder's hash is that of all it holds.
tracked() {
  git ls-tree -r -t --format='%(objectname) %(path)' HEAD
}

restore_times() { # restore_times RECORD
  local now=@$(date +%s.%N) times=$1.times time
  tracked | awk -v now="$now" '
    FILENAME != "-" {hash[$3] = $1; time[$3] = "@" $2; next}
    {print (hash[$2] == $1 ? time[$2] : now), $2}' "$1" - >"$times"
  # Few times: those of a clone's files are set together here.
  cut -d' ' -f1 "$times" | sort -u | while read -r time; do
    awk -v time="$time" '$1 == time {print $2}' "$times" | xargs -r touch -c -d "$time"
  done
  rm -f "$times"
}

# What has the other clone's path in it would read that clone's files: what was compiled with the path of
# its crate, and what includes files of other crates, which cargo records by their whole paths.
forget_paths_of() { # forget_paths_of FOLDER CLONE
  local file hash
  {
    # grep ends with 1 where there is nothing to forget.
    { find "$1" -type f -path '*/.fingerprint/*/dep-*' -exec grep -lF --null -- "$2/" {} + || true; } |
      xargs -0 -r -n 1 dirname
    { find "$1" -type f -name '*.d' -exec grep -l --null '^# env-dep:CARGO_\(MANIFEST_DIR\|BIN_EXE_\)' {} + || true; } |
      while IFS= read -r -d '' file; do
        hash=${file##*-}
        find "$1" -type d -path "*/.fingerprint/*-${hash%.d}"
      done
  } | sort -u | tr '\n' '\0' | xargs -0 -r rm -rf
}

forget_workspace() { # forget_workspace FOLDER
  local name
  local -a ours=(-false)
  while read -r name; do
    ours+=(-o -path "*/.fingerprint/$name-*" -o -path "*/build/$name/*")
  done < <(workspace_members)
  find "$1" -depth -type d \( "${ours[@]}" \) -exec rm -rf {} +
}

workspace_members() {
  # A package's entry begins with name and version; those of its dependencies and targets do not.
  cargo metadata --no-deps --format-version 1 |
    grep -o '"name":"[^"]*","version":"' | cut -d'"' -f4
}
