#!/usr/bin/env bash
# Fetches the definitions of the kinds in which policy engines report, as those who use them ship them, from
# the Go module proxy, and prints the folder that holds them. A second call finds them there.
#
#   openreports.io_reports.yaml, openreports.io_clusterreports.yaml            OpenReports
#   wgpolicyk8s.io_policyreports.yaml, wgpolicyk8s.io_clusterpolicyreports.yaml  Kyverno
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
cache=${XDG_CACHE_HOME:-$HOME/.cache}/opensdn
out=$cache/report-apis-$(sha256sum "$here/fetch.sh" | cut -c1-12)
if [ -d "$out" ]; then echo "$out"; exit 0; fi

command -v go >/dev/null || {
  echo "fetch.sh: Go is needed once, to fetch modules: install it (https://go.dev/doc/install)" >&2
  exit 1
}
mkdir -p "$cache"
making=$(mktemp -d "$cache/.making-report-apis-XXXXXX")
trap 'rm -rf "$making"' EXIT

fetch() { # fetch MODULE@VERSION SUM FILE...
  local module=$1 sum=$2 said folder
  shift 2
  said=$(cd "$making" && GOTOOLCHAIN=local GOFLAGS=-mod=mod go mod download -json "$module") || {
    echo "fetch.sh: $module cannot be fetched: $said" >&2
    exit 1
  }
  grep -qF "\"Sum\": \"$sum\"" <<<"$said" || {
    echo "fetch.sh: $module is not what it was: $said" >&2
    exit 1
  }
  folder=$(sed -n 's/^[[:space:]]*"Dir": "\(.*\)",$/\1/p' <<<"$said")
  (cd "$folder" && cat "$@" >/dev/null && cp "$@" "$making/")
}

fetch github.com/openreports/reports-api@v0.2.1 h1:g9KS3yle9Y1elmww4TK9EkD1rl6inIaiIJPX6e+u680= \
  config/crd/openreports.io_reports.yaml config/crd/openreports.io_clusterreports.yaml
fetch github.com/kyverno/kyverno@v1.15.2 h1:1eDivq33TEgHwZkPl/4Id+9p+x6/3ieg1WzBGjmHWk0= \
  config/crds/policyreport/wgpolicyk8s.io_policyreports.yaml \
  config/crds/policyreport/wgpolicyk8s.io_clusterpolicyreports.yaml
chmod u+w "$making"/*
chmod 755 "$making"
# Of two at once the second finds it done.
mv -T "$making" "$out" 2>/dev/null || [ -d "$out" ]
echo "$out"
