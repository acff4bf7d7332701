#!/usr/bin/python3
"""A client of Redis by TLS, as analytics is one of Redis on other nodes. Each Redis has what was written to it since it
started, and a number counts as written when one of them has taken it.

    redis_client.py write HOST...   writes one number after the other, and prints each that was acknowledged, with the time
    redis_client.py read HOST...    prints the last number that each has taken, if it took one

In the working folder: ca.crt.
"""
import json
import socket
import ssl
import sys
import time

PORT = 6390
KEY = "writes"
TIMEOUT = 3
RETRY_DELAY = 0.2


class Redis:
    """One connection, by inline commands."""

    def __init__(self, host):
        context = ssl.create_default_context(cafile="ca.crt")
        plain = socket.create_connection((host, PORT), TIMEOUT)
        self.socket = context.wrap_socket(plain, server_hostname=host)
        self.answers = self.socket.makefile("rb")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.socket.close()

    def line(self):
        line = self.answers.readline()
        if not line.endswith(b"\r\n"):
            raise EOFError("the connection was closed")
        return line[:-2].decode()

    def set(self, number):
        self.socket.sendall(f"SET {KEY} {number}\r\n".encode())
        answer = self.line()
        if answer != "+OK":
            raise ValueError(answer)

    def get(self):
        self.socket.sendall(f"GET {KEY}\r\n".encode())
        answer = self.line()
        if answer == "$-1":
            return None
        if not answer.startswith("$"):
            raise ValueError(answer)
        return int(self.line())


def write(hosts):
    number = turn = 0
    while True:
        host = hosts[turn % len(hosts)]
        turn += 1
        try:
            with Redis(host) as redis:
                while True:
                    redis.set(number)
                    print(number, time.monotonic(), flush=True)
                    number += 1
                    time.sleep(0.02)
        except Exception as error:
            print(f"{number} to {host}: {error!r}", file=sys.stderr, flush=True)
            time.sleep(RETRY_DELAY)


def read_one(host):
    with Redis(host) as redis:
        return redis.get()


if sys.argv[1] == "write":
    write(sys.argv[2:])
else:
    print(json.dumps({host: read_one(host) for host in sys.argv[2:]}))
