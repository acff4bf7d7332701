#!/usr/bin/env bash
# Packs a folder as an OCI image in an archive that `ctr images import` reads. One layer, not
# compressed; the same folder gives the same bytes.
set -euo pipefail
[ $# = 4 ] || { echo "usage: pack.sh NAME:TAG ENTRYPOINT FOLDER ARCHIVE" >&2; exit 2; }
name=$1 entrypoint=$2 folder=$3 archive=$4
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$work/blobs/sha256"

# Stores a file under its digest, and sets digest and size.
store() { # store FILE
  digest=$(sha256sum <"$1" | cut -d' ' -f1)
  size=$(stat -c %s "$1")
  mv "$1" "$work/blobs/sha256/$digest"
}

case $(uname -m) in
  x86_64) architecture=amd64 ;;
  aarch64) architecture=arm64 ;;
  *) architecture=$(uname -m) ;;
esac
type=application/vnd.oci.image
tar --sort=name --mtime=@0 --owner=0 --group=0 --numeric-owner -C "$folder" -cf "$work/layer" .
store "$work/layer"
layer=$digest layer_size=$size
printf '{"architecture":"%s","os":"linux","config":{"Entrypoint":["%s"],"Env":["PATH=/bin"]},"rootfs":{"type":"layers","diff_ids":["sha256:%s"]}}' \
  "$architecture" "$entrypoint" "$layer" >"$work/config"
store "$work/config"
printf '{"schemaVersion":2,"mediaType":"%s.manifest.v1+json","config":{"mediaType":"%s.config.v1+json","digest":"sha256:%s","size":%s},"layers":[{"mediaType":"%s.layer.v1.tar","digest":"sha256:%s","size":%s}]}' \
  "$type" "$type" "$digest" "$size" "$type" "$layer" "$layer_size" >"$work/manifest"
store "$work/manifest"
printf '{"schemaVersion":2,"manifests":[{"mediaType":"%s.manifest.v1+json","digest":"sha256:%s","size":%s,"annotations":{"io.containerd.image.name":"%s","org.opencontainers.image.ref.name":"%s"}}]}' \
  "$type" "$digest" "$size" "$name" "${name##*:}" >"$work/index.json"
printf '{"imageLayoutVersion":"1.0.0"}' >"$work/oci-layout"
tar --sort=name --mtime=@0 --owner=0 --group=0 --numeric-owner -C "$work" -cf "$archive" blobs index.json oci-layout
