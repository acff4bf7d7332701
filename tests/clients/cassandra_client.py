#!/usr/bin/python3
"""A client of Cassandra as OpenSDN's config is one: by CQL and TLS, with a keyspace that is kept as often as there are
nodes when it is made, and a quorum for each call.

    cassandra_client.py write HOST...   writes one row after the other, and prints each that was acknowledged, with the time
    cassandra_client.py read HOST...    prints what a quorum has, how often the keyspace is kept, and the members

In the working folder: ca.crt. What it trusts then is added to that when the file changes.
"""
import json
import logging
import os
import ssl
import sys
import time

from cassandra import ConsistencyLevel
from cassandra.cluster import EXEC_PROFILE_DEFAULT, Cluster, ExecutionProfile
from cassandra.policies import ConstantReconnectionPolicy, RoundRobinPolicy

PORT = 9041
AUTHORITY = "ca.crt"
KEYSPACE = "writes"
RETRY_DELAY = 0.2


def connect(hosts):
    # The certificate names addresses; this driver checks names only.
    context = ssl.create_default_context(cafile=AUTHORITY)
    context.check_hostname = False
    profile = ExecutionProfile(
        load_balancing_policy=RoundRobinPolicy(),
        consistency_level=ConsistencyLevel.QUORUM,
        request_timeout=15,
    )
    cluster = Cluster(
        hosts,
        port=PORT,
        ssl_context=context,
        protocol_version=4,
        connect_timeout=10,
        control_connection_timeout=10,
        reconnection_policy=ConstantReconnectionPolicy(1, None),
        execution_profiles={EXEC_PROFILE_DEFAULT: profile},
    )
    return cluster, cluster.connect(), context


def until_done(what):
    while True:
        try:
            return what()
        except Exception as error:
            print(f"{error!r}", file=sys.stderr, flush=True)
            time.sleep(RETRY_DELAY)


def write(hosts):
    _, session, context = until_done(lambda: connect(hosts))
    trusted = os.stat(AUTHORITY).st_mtime_ns
    members = 1 + len(list(session.execute("SELECT peer FROM system.peers")))
    until_done(lambda: session.execute(
        f"CREATE KEYSPACE IF NOT EXISTS {KEYSPACE} WITH replication = "
        f"{{'class': 'SimpleStrategy', 'replication_factor': {members}}}", timeout=60))
    until_done(lambda: session.execute(
        f"CREATE TABLE IF NOT EXISTS {KEYSPACE}.rows (n int PRIMARY KEY)", timeout=60))
    insert = until_done(lambda: session.prepare(f"INSERT INTO {KEYSPACE}.rows (n) VALUES (?)"))
    number = 0
    while True:
        until_done(lambda: session.execute(insert, [number]))
        print(number, time.monotonic(), flush=True)
        number += 1
        time.sleep(0.02)
        changed = os.stat(AUTHORITY).st_mtime_ns
        if changed != trusted:
            context.load_verify_locations(AUTHORITY)
            trusted = changed


def read(hosts):
    cluster, session, _ = connect(hosts)
    rows = session.execute(f"SELECT n FROM {KEYSPACE}.rows", timeout=60)
    numbers = sorted(row.n for row in rows)
    replication = session.execute(
        "SELECT replication FROM system_schema.keyspaces WHERE keyspace_name = %s", [KEYSPACE]).one()
    members = sorted(host.address for host in cluster.metadata.all_hosts())
    cluster.shutdown()
    return {"numbers": numbers, "copies": int(replication.replication["replication_factor"]), "members": members}


logging.disable(logging.CRITICAL)
if sys.argv[1] == "write":
    write(sys.argv[2:])
else:
    print(json.dumps(read(sys.argv[2:])))
