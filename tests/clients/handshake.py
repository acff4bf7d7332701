#!/usr/bin/python3
"""Connections by TLS as members have with each other: each side shows a certificate, and looks at that of the other.

    handshake.py    reads a list of {"host", "port", "pair"} and prints as many answers in their order: {"shown": CA} with
                    the name of the CA that has issued what was shown, {"distrust": why} where one side does not trust
                    the other, or {"away": why}

In the working folder: ca.crt, and for each pair PAIR.crt and PAIR.key. All of it by TLS 1.2: there the handshake ends
after the other side has looked at our certificate, so that nothing has to be said or awaited after it.
"""
import concurrent.futures
import json
import socket
import ssl
import sys

TIMEOUT = 5


def answer(job):
    context = ssl.create_default_context(cafile="ca.crt")
    # Certificates name addresses; who has which is not in question here.
    context.check_hostname = False
    context.maximum_version = ssl.TLSVersion.TLSv1_2
    context.load_cert_chain(f"{job['pair']}.crt", f"{job['pair']}.key")
    try:
        with socket.create_connection((job["host"], job["port"]), TIMEOUT) as plain:
            with context.wrap_socket(plain) as connection:
                issuer = dict(part for name in connection.getpeercert()["issuer"] for part in name)
                return {"shown": issuer["commonName"]}
    except ssl.SSLCertVerificationError as error:
        return {"distrust": f"of what it shows: {error.verify_message}"}
    except ssl.SSLError as error:
        # One that ends in the middle of it closes the connection without a word.
        said = error.reason or str(error)
        is_word = "ALERT" in said
        return {"distrust": f"of {job['pair']}: {said}"} if is_word else {"away": said}
    except OSError as error:
        return {"away": str(error)}


with concurrent.futures.ThreadPoolExecutor(max_workers=8) as pool:
    print(json.dumps(list(pool.map(answer, json.load(sys.stdin)))))
