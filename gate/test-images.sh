#!/usr/bin/env bash
# Builds the images of real services and of the stand-in, and shows that each starts and answers.
# Needs root.
set -euo pipefail
cd "$(dirname "$0")/.."
source gate/cache.sh
source gate/summary.sh

[ "$(id -u)" = 0 ] || {
  echo "test-images: only root can unpack and start a system. This would help:" >&2
  echo "    sudo make test-images" >&2
  exit 1
}
gate/setup.sh cluster
missing=()
for pair in buildah:buildah mmdebstrap:mmdebstrap mvn:maven; do
  command -v "${pair%:*}" >/dev/null || missing+=("${pair#*:}")
done
if [ "${#missing[@]}" != 0 ]; then
  echo "test-images: installing ${missing[*]} (about a minute, once)" >&2
  { apt-get update -qq && apt-get install -y -qq --no-install-recommends "${missing[@]}"; } >/dev/null 2>&1 || {
    echo "test-images: apt-get did not install them. This would help:" >&2
    echo "    sudo apt-get install -y --no-install-recommends ${missing[*]}" >&2
    exit 1
  }
fi
take_build_slot
for service in redis rabbitmq zookeeper cassandra stand-in; do
  step "$service: build" tests/images/build.sh "$service"
done
tests "tests" cargo test --locked --package opensdn-tests --features service-images \
  --test system service_images:: -- --test-threads 1
finish
