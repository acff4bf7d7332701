#!/usr/bin/env bash
# Packs the kubectl plugin for krew: an archive for each platform, and opensdn.yaml, the manifest that names them. The same
# programs give the same files.
#
#   pack.sh VERSION ADDRESS HOMEPAGE FOLDER amd64=PROGRAM [arm64=PROGRAM]
#
# ADDRESS is where the archives will be found: https://example.com/releases/v0.1.0
set -euo pipefail
[ $# -ge 5 ] || { sed -n '2,9s/^# \{0,1\}//p' "$0" >&2; exit 2; }
version=${1#v} address=${2%/} homepage=$3 folder=$4
shift 4
here=$(cd "$(dirname "$0")/../.." && pwd)
case $version in
  *[!0-9A-Za-z.+-]* | [!0-9]*) echo "pack.sh: $version is no version: as in 0.1.0" >&2; exit 2 ;;
esac
case $address$homepage in
  https://*https://*) ;;
  *) echo "pack.sh: ADDRESS and HOMEPAGE must begin with https://" >&2; exit 2 ;;
esac
# Who installs a plugin waits for it, so it is small.
readonly MOST_BYTES=40000000
mkdir -p "$folder"
making=$(mktemp -d "$folder/.making-XXXXXX")
trap 'rm -rf "$making"' EXIT

platforms=
for pair; do
  arch=${pair%%=*} program=${pair#*=}
  case $arch in amd64 | arm64) ;; *) echo "pack.sh: $arch is none of amd64 and arm64" >&2; exit 2 ;; esac
  [ -f "$program" ] || { echo "pack.sh: $program is missing: make plugin" >&2; exit 1; }
  size=$(stat -Lc %s "$program")
  [ "$size" -lt "$MOST_BYTES" ] ||
    { echo "pack.sh: $program has $size bytes, and a plugin less than $MOST_BYTES: was it built as a release?" >&2; exit 1; }
  ! LC_ALL=C grep -q 'ld-linux' "$program" ||
    { echo "pack.sh: $program needs the C library of the machine that built it: apt-get install musl-tools, then make plugin" >&2; exit 1; }
  install -D -m 755 "$program" "$making/$arch/kubectl-opensdn"
  install -m 644 "$here/LICENSE" "$making/$arch/LICENSE"
  name=kubectl-opensdn-v$version-linux-$arch.tar.gz
  tar -C "$making/$arch" --sort=name --mtime=@0 --owner=0 --group=0 --numeric-owner --format=ustar -cf - LICENSE kubectl-opensdn |
    gzip -n9 >"$making/$name"
  sha256=$(sha256sum "$making/$name" | cut -d' ' -f1)
  platforms+="
  - selector:
      matchLabels:
        os: linux
        arch: $arch
    uri: $address/$name
    sha256: $sha256
    bin: kubectl-opensdn
    files:
      - from: kubectl-opensdn
        to: .
      - from: LICENSE
        to: ."
done

cat >"$making/opensdn.yaml" <<MANIFEST
apiVersion: krew.googlecontainertools.github.com/v1alpha2
kind: Plugin
metadata:
  name: opensdn
spec:
  version: v$version
  homepage: $homepage
  shortDescription: Install and look after OpenSDN
  description: |
    Installs OpenSDN (Tungsten Fabric) in a cluster, checks whether it can be,
    says how it is and what the cause of trouble is, validates manifests before
    a cluster sees them, and makes admission policies of your own.
  caveats: |
    To complete commands in your shell:
      kubectl opensdn completion kubectl --install ~/.local/bin
  platforms:$platforms
MANIFEST
mv "$making"/*.tar.gz "$making/opensdn.yaml" "$folder/"
