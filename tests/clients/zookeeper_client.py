#!/usr/bin/python3
"""A client of ZooKeeper as OpenSDN's config is one: by kazoo, on the port for clients.

    zookeeper_client.py write HOST...   writes one number after the other, and prints each that was acknowledged, with the time
    zookeeper_client.py read HOST...    prints what each has: how it serves, its list of members, and the numbers
"""
import json
import logging
import sys
import time

from kazoo.client import KazooClient
from kazoo.exceptions import NodeExistsError

PORT = 2181
FOLDER = "/writes"
RETRY_DELAY = 0.2


def connect(hosts, limit):
    client = KazooClient(
        hosts=",".join(f"{host}:{PORT}" for host in hosts),
        timeout=6,
        connection_retry={"max_tries": -1, "max_delay": 1},
    )
    client.start(timeout=limit)
    return client


def write(hosts):
    client = connect(hosts, 120)
    number = 0
    while True:
        try:
            client.create(f"{FOLDER}/{number:06}", b"", makepath=True)
        except NodeExistsError:
            pass  # The answer to an earlier try was lost.
        except Exception as error:
            print(f"{number}: {error!r}", file=sys.stderr, flush=True)
            time.sleep(RETRY_DELAY)
            continue
        print(number, time.monotonic(), flush=True)
        number += 1
        time.sleep(0.01)


def read_one(host):
    client = connect([host], 30)
    try:
        client.sync("/")
        numbers = client.get_children(FOLDER) if client.exists(FOLDER) else []
        configuration = client.get("/zookeeper/config")[0].decode()
        mode = client.command(b"srvr").split("Mode: ")[-1].split()[0]
    finally:
        client.stop()
        client.close()
    lines = configuration.splitlines()
    members = sorted(line.split("=")[1].split(":")[0] for line in lines if line.startswith("server."))
    version = configuration.split("version=")[-1].strip()
    return {"version": version, "is_leader": mode == "leader", "members": members, "numbers": sorted(map(int, numbers))}


logging.basicConfig(level=logging.CRITICAL)
if sys.argv[1] == "write":
    write(sys.argv[2:])
else:
    print(json.dumps({host: read_one(host) for host in sys.argv[2:]}))
