#!/bin/bash
# Stands in for what the image of a provisioner starts: what its environment says is what tests/stand-in reads.
set -u
[ "$*" = "/usr/bin/tail -f /dev/null" ] || exit 64
[ -n "${NODE_TYPE-}" ] && [ -n "${PROVISION_RETRIES-}" ] && [ -n "${PROVISION_DELAY-}" ] || exit 64
export -p | sed -n 's/^declare -x \([A-Za-z_][A-Za-z_0-9]*=\)/\1/p' >/tmp/provisioner.env
exec /opensdn-stand-in provisioner --ask-every 20 --config /tmp/provisioner.env
