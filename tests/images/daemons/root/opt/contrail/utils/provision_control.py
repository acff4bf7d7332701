#!/bin/bash
# Stands in for what the image tells the Config API by: with all that it has to be given, and if the API is reached.
set -eu
server= port= asn=
while [ $# -gt 0 ]; do
  case $1 in
  -c) [ -s "$2" ] && shift 2 ;;
  --router_asn) asn=$2 && shift 2 ;;
  --api_server_ip) server=$2 && shift 2 ;;
  --api_server_port) port=$2 && shift 2 ;;
  --api_server_use_ssl) [ "$2" = true ] && shift 2 ;;
  --ibgp_auto_mesh | --no_ibgp_auto_mesh | --enable_4byte_as) shift ;;
  *) echo "provision_control.py: does not know $1" >&2 && exit 2 ;;
  esac
done
[ -n "$asn" ]
exec 3<>"/dev/tcp/$server/$port"
