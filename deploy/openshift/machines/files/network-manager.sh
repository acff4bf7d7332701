#!/bin/bash
# Keeps the host's name, and stops NetworkManager once vhost0 has taken the address of the node: it would give it back to
# the interface below. scripts in deploy/openshift/99_master_network_manager_stop_service.yaml:38 of
# tungstenfabric/tf-openshift.
set -u

until name=$(hostname -f) && [[ $name != localhost && $name != localhost.localdomain ]]; do sleep 2; done
until hostnamectl set-hostname "$name"; do sleep 2; done
while true; do
  if [[ -L /sys/class/net/vhost0 ]] && ip -4 address show vhost0 | grep -q 'inet ' &&
    systemctl is-active --quiet NetworkManager; then
    echo "vhost0 has an address: stopping NetworkManager"
    systemctl stop NetworkManager
  fi
  sleep 10
done
