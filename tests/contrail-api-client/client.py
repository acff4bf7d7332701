#!/usr/bin/python3
"""A client of the Config API as OpenSDN's own daemons and tools are ones: by contrail-api-client, OpenSDN's library.

    client.py URL [KEYSTONE-URL]    prints what it has done and read, as JSON; with Keystone as admin, contrail123

It adds an entry to the link-local services as provision_linklocal.py does, an annotation and port pools, reads all of it
again, and takes its entry out.
"""
import json
import logging
import sys
from urllib.parse import urlparse

from vnc_api import vnc_api
from vnc_api.exceptions import NoIdError, RefsExistError
from vnc_api.gen.resource_client import GlobalVrouterConfig, Namespace
from vnc_api.gen.resource_xsd import (
    KeyValuePair,
    LinklocalServiceEntryType,
    LinklocalServicesTypes,
    PortTranslationPool,
    PortTranslationPools,
    PortType,
)

CONFIG = ["default-global-system-config", "default-global-vrouter-config"]
NAME = "of-the-library"


def connect(url, keystone):
    where = urlparse(url)
    settings = {"api_server_host": where.hostname, "api_server_port": where.port, "auth_type": "noauth"}
    if keystone:
        at = urlparse(keystone)
        settings.update(auth_type="keystone", auth_protocol=at.scheme, auth_host=at.hostname, auth_port=at.port,
                        auth_url="/v3/auth/tokens", username="admin", password="contrail123", tenant_name="admin",
                        domain_name="Default")
    return vnc_api.VncApi(**settings)


def entries(api):
    services = api.global_vrouter_config_read(fq_name=CONFIG).get_linklocal_services()
    return (services.get_linklocal_service_entry() or []) if services else []


def write(api, wanted):
    config = GlobalVrouterConfig(name=CONFIG[-1], parent_type="global-system-config", fq_name=CONFIG)
    config.set_linklocal_services(LinklocalServicesTypes(wanted))
    api.global_vrouter_config_update(config)


def pools():
    ranges = {"tcp": PortType(56000, 57023), "udp": PortType(57024, 58047)}
    return PortTranslationPools([PortTranslationPool(protocol, its) for protocol, its in ranges.items()])


def refusal(kind, action):
    try:
        action()
    except kind as error:
        return str(error)
    raise SystemExit(f"it was accepted: {action}")


def main(url, keystone=None):
    api = connect(url, keystone)
    before = entries(api)
    mine = LinklocalServiceEntryType(NAME, "10.10.10.9", 8082, "", 8082, ["192.168.1.100"])
    write(api, before + [mine])
    uuid = api.fq_name_to_id("global-vrouter-config", CONFIG)
    api.prop_map_set_element(uuid, "annotations", KeyValuePair("library", "was here"))
    config = api.global_vrouter_config_read(id=uuid)
    config.set_port_translation_pools(pools())
    api.global_vrouter_config_update(config)

    read = api.global_vrouter_config_read(id=uuid)
    listed = api.global_vrouter_configs_list(detail=True)
    answer = {
        "before": [entry.exportDict("") for entry in before],
        "written": [entry.exportDict("") for entry in entries(api)],
        "annotations": [pair.exportDict("") for pair in read.get_annotations().get_key_value_pair()],
        "pools": [pool.exportDict("") for pool in read.get_port_translation_pools().get_port_translation_pool()],
        "listed": [one.get_fq_name() for one in listed],
        "name": api.id_to_fq_name(uuid),
        "unknown": refusal(NoIdError, lambda: api.fq_name_to_id("virtual-network", ["a", "b"])),
    }
    lock = Namespace(NAME)
    api.namespace_create(lock)
    answer["taken"] = refusal(RefsExistError, lambda: api.namespace_create(Namespace(NAME)))
    api.namespace_delete(id=lock.uuid)
    write(api, [entry for entry in entries(api) if entry.get_linklocal_service_name() != NAME])
    answer["after"] = [entry.exportDict("") for entry in entries(api)]
    print(json.dumps(answer, indent=2))


logging.basicConfig(level=logging.CRITICAL)
main(*sys.argv[1:])
