# Which commit the checkout is of. Sourced, with the clone's root as the current folder.
revision() {
  local revision
  revision=$(git rev-parse --verify HEAD 2>/dev/null) || { echo unknown; return; }
  # What is not committed has no name.
  git diff --quiet HEAD -- . || revision=$revision-modified
  echo "$revision"
}
