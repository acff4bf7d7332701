#!/usr/bin/env bash
# Builds the Kubernetes programs that the sandbox runs, from the Go module proxy, and
# prints the folder that holds them. A second call finds them there and returns at once.
#
#   build.sh 1.35     etcd, kube-apiserver, kube-controller-manager, kube-scheduler, kubectl
#   build.sh kwok     kwok
#   build.sh 1.35-nodes   kubelet and kube-proxy, and the images that each node starts with
#   build.sh coredns  CoreDNS and its image
set -euo pipefail
subject=${1:?usage: build.sh 1.33|1.35|1.36|kwok|1.35-nodes|coredns}
here=$(cd "$(dirname "$0")" && pwd)
module=${subject%-nodes}
[ -f "$here/$module/go.mod" ] || { echo "build.sh: no control plane named $subject in $here" >&2; exit 2; }

version=$(sed -n 's/^\(require\)\?[[:space:]]*\(k8s.io\/kubernetes\|sigs.k8s.io\/kwok\|github.com\/coredns\/coredns\) v\([0-9.]*\).*/\3/p' "$here/$module/go.mod" | head -1)
sources=("$here/$module/go.mod" "$here/$module/go.sum" "$here/build.sh")
case $subject in
  *-nodes | coredns) sources+=("$here"/images/* "$here"/coredns/main.go) ;;
esac
digest=$(cat "${sources[@]}" | sha256sum | cut -c1-12)
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
cd "$here/$module"

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

# Images are made from scratch: no registry can be reached.
image() { # image NAME PROGRAM FOLDER
  echo "  packing image $1" >&2
  "$here/images/pack.sh" "opensdn.lab/$1" "$2" "$3" "$making/${1%:*}.tar"
}

node_images() {
  local root=$making/root
  # The first process of each machine of the lab, and of each pod's sandbox.
  cc -static -Os -s -o "$making/pause" "$here/images/pause.c"
  mkdir -p "$root/pause" "$root/tools/bin" "$root/tools/tmp"
  cp "$making/pause" "$root/pause/pause"
  image pause:1 /pause "$root/pause"
  local busybox applet
  busybox=$(command -v busybox) || {
    echo "build.sh: there is no busybox: apt-get install busybox-static" >&2
    exit 1
  }
  cp "$busybox" "$root/tools/bin/busybox"
  for applet in $("$busybox" --list); do
    [ "$applet" = busybox ] || ln -s busybox "$root/tools/bin/$applet"
  done
  rm "$root/tools/bin/wget"
  go build -ldflags "-s -w" -o "$root/tools/bin/fetch" "$here/images/fetch.go"
  image tools:1 /bin/sh "$root/tools"
  rm -r "$root"
}

# As published it ends a pod by its name, at times twice, and then the next pod of that name is ended too. A kubelet names
# the UID.
kwok() {
  local source=$making/source
  local file=$source/pkg/kwok/controllers/pod_controller.go
  go mod download sigs.k8s.io/kwok
  cp -r "$(go list -m -f '{{.Dir}}' sigs.k8s.io/kwok)" "$source"
  chmod -R u+w "$source"
  local options='metav1.DeleteOptions{GracePeriodSeconds: new(int64), Preconditions: metav1.NewUIDPreconditions(string(pod.UID))}'
  sed -i "s/Delete(ctx, pod.Name, deleteOpt)/Delete(ctx, pod.Name, $options)/" "$file"
  grep -q NewUIDPreconditions "$file" || {
    echo "build.sh: kwok $version deletes pods in another way: look at deleteResource in pod_controller.go" >&2
    exit 1
  }
  cp go.mod "$making/go.mod"
  cp go.sum "$making/go.sum"
  go mod edit -replace "sigs.k8s.io/kwok=$source" "$making/go.mod"
  GOFLAGS="$GOFLAGS -modfile=$making/go.mod" build kwok sigs.k8s.io/kwok/cmd/kwok
  rm -r "$source" "$making/go.mod" "$making/go.sum"
}

case $subject in
  kwok) kwok ;;
  coredns)
    build coredns .
    mkdir "$making/root"
    ln "$making/coredns" "$making/root/coredns"
    image coredns:1 /coredns "$making/root"
    rm -r "$making/root"
    ;;
  *-nodes)
    build kubelet k8s.io/kubernetes/cmd/kubelet
    build kube-proxy k8s.io/kubernetes/cmd/kube-proxy
    node_images
    ;;
  *)
    for program in kube-apiserver kube-controller-manager kube-scheduler kubectl; do
      build "$program" "k8s.io/kubernetes/cmd/$program"
    done
    build etcd go.etcd.io/etcd/server/v3
    ;;
esac
touch "$making/complete"
mv -T "$making" "$out"
echo "$out"
