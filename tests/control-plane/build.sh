#!/usr/bin/env bash
# Builds the Kubernetes programs that the sandbox runs, from the Go module proxy, and
# prints the folder that holds them. A second call finds them there and returns at once.
#
#   build.sh 1.35     etcd, kube-apiserver, kube-controller-manager, kube-scheduler, kubectl
#   build.sh kwok     kwok
set -euo pipefail
subject=${1:?usage: build.sh 1.33|1.35|1.36|kwok}
here=$(cd "$(dirname "$0")" && pwd)
[ -f "$here/$subject/go.mod" ] || { echo "build.sh: no control plane named $subject in $here" >&2; exit 2; }

version=$(sed -n 's/^\(require\)\?[[:space:]]*\(k8s.io\/kubernetes\|sigs.k8s.io\/kwok\) v\([0-9.]*\).*/\3/p' "$here/$subject/go.mod" | head -1)
digest=$(cat "$here/$subject/go.mod" "$here/$subject/go.sum" "$here/build.sh" | sha256sum | cut -c1-12)
cache=${XDG_CACHE_HOME:-$HOME/.cache}/opensdn/control-plane
out=$cache/$subject-$version-$digest
if [ -f "$out/complete" ]; then echo "$out"; exit 0; fi

command -v go >/dev/null || {
  echo "build.sh: Go is needed once, to build $subject: install it (https://go.dev/doc/install), or set KUBEBUILDER_ASSETS to a folder with the programs" >&2
  exit 1
}

mkdir -p "$cache"
exec 9>"$cache/$subject.lock"
flock 9                       # two runs at once: the second waits and finds the work done
if [ -f "$out/complete" ]; then echo "$out"; exit 0; fi

making=$(mktemp -d "$cache/.making-$subject-XXXXXX")
trap 'rm -rf "$making"' EXIT
export CGO_ENABLED=0 GOTOOLCHAIN=local GOFLAGS="-buildvcs=false -trimpath -mod=readonly"
cd "$here/$subject"

# Without the version a server calls itself v0.0.0-master, and clients complain.
build() { # build OUTPUT PACKAGE
  echo "  building $1 $version" >&2
  go build -ldflags "-s -w \
    -X k8s.io/component-base/version.gitVersion=v$version \
    -X k8s.io/component-base/version.gitMajor=1 \
    -X k8s.io/component-base/version.gitMinor=$(echo "$version" | cut -d. -f2) \
    -X k8s.io/client-go/pkg/version.gitVersion=v$version \
    -X sigs.k8s.io/kwok/pkg/consts.Version=v$version" -o "$making/$1" "$2"
}

if [ "$subject" = kwok ]; then
  build kwok sigs.k8s.io/kwok/cmd/kwok
else
  for program in kube-apiserver kube-controller-manager kube-scheduler kubectl; do
    build "$program" "k8s.io/kubernetes/cmd/$program"
  done
  build etcd go.etcd.io/etcd/server/v3
fi
touch "$making/complete"
mv -T "$making" "$out"
echo "$out"
