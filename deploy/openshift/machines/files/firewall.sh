#!/bin/bash
# Lets in what OpenSDN's components listen on, before rules of others that drop it. On RHEL CoreOS 9 iptables writes
# nftables. A second run changes nothing.
# Ports: scripts/iptables_script.sh:3-99 of tungstenfabric/tf-openshift, without those of OpenShift itself and of services
# that OpenSDN does not bring; with those of MPLS over UDP (6635, 51234), the sockets of rabbit, and GRE, which it forgets,
# and of workers of the API (introspection 18084, administration 28095, one for each).
set -uo pipefail

tcp=(
  53 179 514 2181 2182 2888 3000 3002 3333 3514 3888 4371 4739 5269 5673 5920 5921 5995 6343 6389
  7010:7013 7200 7201 8053 8071 8072 8081:8097 8100:8104 8108 8111:8114 8143 8180
  9041 9042 9053 9091 9092 9100 9160 9161 15673 18084:18146 25673 25684:25694 28095:28157
)
udp=(53 514 3333 3514 4739 4789 6343 6635 8053 51234)

failed=0
accept() {
  iptables -w 5 -t filter -C INPUT "$@" -j ACCEPT 2>/dev/null && return
  iptables -w 5 -t filter -I INPUT 1 "$@" -j ACCEPT || failed=1
}
for port in "${tcp[@]}"; do accept -p tcp --dport "$port"; done
for port in "${udp[@]}"; do accept -p udp --dport "$port"; done
accept -p 47
exit "$failed"
