#!/usr/bin/python3
"""Has pods be older than they are, by what etcd has of them: no client of the API server may change when they were made.

    make_older.py    reads {"seconds": SECONDS, "pods": ["NAMESPACE/NAME"]}, and prints how many it found

etcd listens at the socket `etcd.sock` of the folder that it runs in.
"""
import base64
import http.client
import json
import re
import socket
import sys

# `creationTimestamp` (8) of ObjectMeta: seconds in five bytes, as they are until the year 2514, and no nanoseconds.
CREATED = re.compile(rb"\x42\x08\x08([\x80-\xff]{4}[\x00-\x7f])\x10\x00", re.DOTALL)


def number(varint):
    return sum((byte & 0x7F) << (7 * place) for place, byte in enumerate(varint))


def varint(number):
    return bytes((number >> (7 * place) & 0x7F) | (0x80 if place < 4 else 0) for place in range(5))


def older(stored, seconds):
    # What is in front of it is the pod's own: names, and its UID.
    found = CREATED.search(stored)
    made = varint(number(found[1]) - seconds)
    return stored[: found.start(1)] + made + stored[found.end(1) :]


class Etcd(http.client.HTTPConnection):
    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(10)
        self.sock.connect("etcd.sock")


def call(what, body):
    etcd = Etcd("localhost")
    etcd.request("POST", f"/v3/kv/{what}", json.dumps(body))
    answer = etcd.getresponse()
    if answer.status != 200:
        sys.exit(f"etcd answers {answer.status}: {answer.read().decode()}")
    return json.load(answer)


def text(data):
    return base64.b64encode(data).decode()


def make_older(pod, seconds):
    key = text(f"/registry/pods/{pod}".encode())
    while True:
        there = call("range", {"key": key}).get("kvs")
        if not there:
            return 0
        stored = older(base64.b64decode(there[0]["value"]), seconds)
        put = {
            "compare": [{"key": key, "target": "MOD", "result": "EQUAL", "mod_revision": there[0]["mod_revision"]}],
            "success": [{"request_put": {"key": key, "value": text(stored)}}],
        }
        if call("txn", put).get("succeeded"):
            return 1


job = json.load(sys.stdin)
print(sum(make_older(pod, job["seconds"]) for pod in job["pods"]))
