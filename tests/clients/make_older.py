#!/usr/bin/python3
"""Has pods be older than they are, by what etcd has of them: no client of the API server may change when they were made.

    make_older.py    reads {"keys": FOLDER, "seconds": SECONDS, "pods": ["NAMESPACE/NAME"]}, and prints how many it found

In the folder of the keys: ca.crt, etcd-client.crt and etcd-client.key.
"""
import base64
import json
import re
import ssl
import sys
import urllib.request

URL = "https://127.0.0.1:2379/v3/kv/"
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


def call(context, what, body):
    request = urllib.request.Request(URL + what, json.dumps(body).encode())
    with urllib.request.urlopen(request, context=context, timeout=10) as answer:
        return json.load(answer)


def text(data):
    return base64.b64encode(data).decode()


def make_older(context, pod, seconds):
    key = text(f"/registry/pods/{pod}".encode())
    while True:
        there = call(context, "range", {"key": key}).get("kvs")
        if not there:
            return 0
        stored = older(base64.b64decode(there[0]["value"]), seconds)
        put = {
            "compare": [{"key": key, "target": "MOD", "result": "EQUAL", "mod_revision": there[0]["mod_revision"]}],
            "success": [{"request_put": {"key": key, "value": text(stored)}}],
        }
        if call(context, "txn", put).get("succeeded"):
            return 1


job = json.load(sys.stdin)
context = ssl.create_default_context(cafile=job["keys"] + "/ca.crt")
context.load_cert_chain(job["keys"] + "/etcd-client.crt", job["keys"] + "/etcd-client.key")
print(sum(make_older(context, pod, job["seconds"]) for pod in job["pods"]))
