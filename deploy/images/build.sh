#!/usr/bin/env bash
# Builds the image of a program of ours as an OCI archive, and prints the archive's path. What has
# been built before is found again.
#
#   build.sh webhook|operator
set -euo pipefail
case ${1:-} in
  webhook | operator) ;;
  *) echo "usage: build.sh webhook|operator" >&2; exit 2 ;;
esac
cd "$(dirname "$0")/../.."
source gate/cache.sh
source deploy/images/archive.sh
source deploy/images/program.sh

program_archive "opensdn-$1" "opensdn-$1" "deploy/images/$1/Dockerfile"
