# Stands in for the functions of the image of the vrouter agent: its configuration is made of the same parameters, by the
# same names. There is no kernel module: of vhost0 it says what the node's own interface has.
PARAMETERS_FILE_TEMPLATE=/parameters.template
PARAMETERS_FILE=/tmp/parameters

# `get_server_list` of the image.
servers() {
  local one list=
  for one in ${1//,/ }; do
    list+="$one:$2 "
  done
  echo "$list"
}

prepare_agent() {
  local AGENT_NAME=$VROUTER_HOSTNAME PHYS_INT=${PHYSICAL_INTERFACE:-eth0} VROUTER_CIDR=$POD_IP/24 CONTROL_NETWORK_IP=$POD_IP
  local XMPP_SERVERS_LIST COLLECTOR_SERVERS key
  XMPP_SERVERS_LIST=$(servers "$CONTROL_NODES" 5269)
  COLLECTOR_SERVERS=$(servers "$ANALYTICS_NODES" "${COLLECTOR_PORT:-8086}")
  while IFS='=' read -r key _; do
    [ -z "$key" ] || echo "$key=\"${!key-}\""
  done <"$PARAMETERS_FILE_TEMPLATE" >"$PARAMETERS_FILE"
}

create_agent_config() {
  . "$PARAMETERS_FILE"
  mkdir -p /etc/contrail
  cat >/etc/contrail/contrail-vrouter-agent.conf <<END
[CONTROL-NODE]
servers=$XMPP_SERVERS_LIST

[DEFAULT]
http_server_ip=0.0.0.0
collectors=$COLLECTOR_SERVERS
log_level=$LOG_LEVEL
log_local=$LOG_LOCAL
hostname=$AGENT_NAME

[SANDESH]
introspect_ssl_enable=$INTROSPECT_SSL_ENABLE
sandesh_ssl_enable=$SANDESH_SSL_ENABLE
sandesh_keyfile=$SANDESH_KEYFILE
sandesh_certfile=$SANDESH_CERTFILE
sandesh_server_keyfile=$SANDESH_SERVER_KEYFILE
sandesh_server_certfile=$SANDESH_SERVER_CERTFILE
sandesh_ca_cert=$SANDESH_CA_CERTFILE

[NETWORKS]
control_network_ip=$CONTROL_NETWORK_IP

[METADATA]
metadata_proxy_secret=$METADATA_PROXY_SECRET

[VIRTUAL-HOST-INTERFACE]
name=vhost0
ip=$VROUTER_CIDR
physical_interface=$PHYS_INT

[HYPERVISOR]
type=$HYPERVISOR_TYPE
END
}

start_agent() {
  exec -a /usr/bin/contrail-vrouter-agent /opensdn-stand-in vrouteragent --ask-every 20 \
    --config /etc/contrail/contrail-vrouter-agent.conf
}
