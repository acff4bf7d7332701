# Makes images as OCI archives, by buildah alone: no engine, no daemon, no registry. The archives
# are kept in the cache by a digest of what they are made of. Sourced, after gate/cache.sh.
IMAGES=${OPENSDN_IMAGES:-$OPENSDN_CACHE/images}
# As many archives of one image are kept, for clones that take turns.
readonly ARCHIVES_KEPT=4

image_step() { echo "images: $*" >&2; }
image_stop() { # image_stop WHAT [COMMAND-THAT-HELPS]
  echo "images: cannot go on: $1${2:+. This would help:}" >&2
  [ -z "${2:-}" ] || echo "    $2" >&2
  exit 1
}

need_for_images() { # need_for_images PROGRAM DEBIAN-PACKAGE
  command -v "$1" >/dev/null ||
    image_stop "there is no $1" "sudo apt-get install -y --no-install-recommends $2"
}

digest_of() { sha256sum | cut -c1-12; }

# Prints the path of the image's archive, which is made only if the cache has none with that
# digest. MAKE is called with an empty folder, and has to leave in it what the Dockerfile copies.
# Files have the time 0, so that the same content gives the same digest.
image_archive() { # image_archive NAME VERSION DIGEST MAKE DOCKERFILE [BUILDAH-ARGUMENT...]
  local name=$1 version=$2 digest=$3 make=$4 dockerfile=$5 started=$SECONDS archive making
  shift 5
  archive=$IMAGES/$name-$version-$digest.tar
  mkdir -p "$IMAGES"
  exec 9>"$IMAGES/$name.lock"
  flock 9 # two runs at once: the second waits and finds the work done
  if [ ! -f "$archive" ]; then
    need_for_images buildah buildah
    image_step "making $name:$version"
    sweep_images "$name"
    making=$(mktemp -d "$IMAGES/.making-$name-XXXXXX")
    # shellcheck disable=SC2064 # now, since the name is local
    trap "rm -rf '$making'" EXIT
    mkdir "$making/context"
    "$make" "$making/context" 9>&-
    pack_image "$making" "docker.io/library/$name:$version" -f "$dockerfile" "$@" 9>&-
    mv "$making/archive.tar" "$archive"
    rm -rf "$making"
    trap - EXIT
    image_step "made $name:$version in $((SECONDS - started)) s, $(du -m "$archive" | cut -f1) MB"
  fi
  exec 9>&-
  echo "$archive"
}

# What a killed run left, and archives that have not been made for long. The lock is held.
sweep_images() { # sweep_images NAME
  local archive
  rm -rf "$IMAGES/.making-$1-"*
  find "$IMAGES" -maxdepth 1 -name "$1-*.tar" -printf '%T@ %p\n' | sort -rn |
    tail -n "+$ARCHIVES_KEPT" | cut -d' ' -f2- | while read -r archive; do
    # With what stands beside it.
    rm -f "$archive" "${archive%.tar}".*.json
  done
}

# With a storage of its own, since another's may be locked, full, or of another driver. The
# reference is the whole one that a kubelet looks for when a pod names the image without a host.
pack_image() { # pack_image MAKING REFERENCE BUILDAH-ARGUMENT...
  local making=$1 reference=$2 log=$1/log
  local -a buildah=(buildah --root "$1/storage" --runroot "$1/run" --storage-driver vfs)
  shift 2
  {
    "${buildah[@]}" bud --isolation chroot --timestamp 0 --identity-label=false --layers=false \
      --tag "$reference" "$@" "$making/context" &&
      "${buildah[@]}" push --format oci "$reference" "oci-archive:$making/archive.tar:$reference"
  } >"$log" 2>&1 || {
    cat "$log" >&2
    image_stop "buildah did not make $reference"
  }
}
