#!/usr/bin/env bash
# Builds Helm from the Go module proxy, and prints its path. A second call finds it there and returns at once.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
digest=$(cat "$here"/go.mod "$here"/go.sum "$here"/tools.go "$here"/build.sh | sha256sum | cut -c1-12)
cache=${XDG_CACHE_HOME:-$HOME/.cache}/opensdn/helm
out=$cache/helm-$digest
if [ -f "$out" ]; then echo "$out"; exit 0; fi

command -v go >/dev/null || {
  echo "build.sh: Go is needed once, to build Helm: install it (https://go.dev/doc/install)" >&2
  exit 1
}
mkdir -p "$cache"
exec 9>"$cache/lock"
flock 9                       # two runs at once: the second waits and finds the work done
if [ -f "$out" ]; then echo "$out"; exit 0; fi
making=$(mktemp "$cache/.making-XXXXXX")
trap 'rm -f "$making"' EXIT
export CGO_ENABLED=0 GOTOOLCHAIN=local GOFLAGS="-buildvcs=false -trimpath -mod=readonly"
cd "$here"
go build -ldflags "-s -w" -o "$making" helm.sh/helm/v3/cmd/helm
mv -T "$making" "$out"
echo "$out"
