# Where everything that can be made again is kept, outside the clone, so that a fresh clone
# on a machine that has built before starts warm. Sourced by the scripts beside it, with the
# clone's root as the current folder.
OPENSDN_CACHE=${XDG_CACHE_HOME:-$HOME/.cache}/opensdn

# Gives this run a build folder of its own until it ends: a second run at the same time takes
# the next one. File descriptor 8 is the lock; whatever outlives the run must not inherit it,
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
      return
    fi
  done
  echo "gate: eight runs hold all build folders in $OPENSDN_CACHE/build; wait for one to end" >&2
  exit 1
}

# Cargo names what it builds from a workspace by paths relative to its root, and calls it
# fresh when no source is newer. What another clone left would pass as ours, so everything
# built from the workspace itself is made anew; dependencies stay.
adopt_build_slot() { # adopt_build_slot FOLDER
  local slot=$1 owner name
  local -a ours=(-false)
  owner="$PWD $(stat -c '%d:%i:%W' .)"
  mkdir -p "$slot"
  if [ "$(cat "$slot/owner" 2>/dev/null)" != "$owner" ]; then
    rm -f "$slot/owner"
    while read -r name; do
      ours+=(-o -path "*/.fingerprint/$name-*" -o -path "*/build/$name/*")
    done < <(workspace_members)
    find "$slot" -depth -type d \( "${ours[@]}" \) -exec rm -rf {} +
    echo "$owner" >"$slot/owner"
  fi
}

workspace_members() {
  # A package's entry begins with name and version; those of its dependencies and targets do not.
  cargo metadata --no-deps --format-version 1 |
    grep -o '"name":"[^"]*","version":"' | cut -d'"' -f4
}
