#!/usr/bin/python3
"""A client of RabbitMQ as OpenSDN's config is one: by AMQP and TLS with a certificate. Its messages are confirmed.

    rabbitmq_client.py write HOST...   publishes one number after the other, and prints each that was confirmed, with the time
    rabbitmq_client.py read HOST...    takes all from the queue, and prints them for each host as one answer

In the working folder: ca.crt, client.crt, client.key, and user, password, vhost.
"""
import json
import logging
import ssl
import sys
import time

import pika

PORT = 5673
QUEUE = "writes"
RETRY_DELAY = 0.2
DURABLE = pika.BasicProperties(delivery_mode=2)


def text(name):
    with open(name, encoding="utf-8") as file:
        return file.read()


def connect(host):
    context = ssl.create_default_context(cafile="ca.crt")
    context.load_cert_chain("client.crt", "client.key")
    return pika.BlockingConnection(
        pika.ConnectionParameters(
            host=host,
            port=PORT,
            virtual_host=text("vhost"),
            credentials=pika.PlainCredentials(text("user"), text("password")),
            ssl_options=pika.SSLOptions(context, host),
            socket_timeout=3,
            stack_timeout=6,
            heartbeat=6,
            blocked_connection_timeout=10,
        )
    )


def channel_of(connection):
    channel = connection.channel()
    channel.queue_declare(QUEUE, durable=True)
    return channel


def write(hosts):
    number = turn = 0
    while True:
        host = hosts[turn % len(hosts)]
        turn += 1
        try:
            connection = connect(host)
            channel = channel_of(connection)
            channel.confirm_delivery()
            while True:
                channel.basic_publish("", QUEUE, str(number).encode(), DURABLE, mandatory=True)
                print(number, time.monotonic(), flush=True)
                number += 1
                time.sleep(0.01)
        except Exception as error:
            print(f"{number} to {host}: {error!r}", file=sys.stderr, flush=True)
            time.sleep(RETRY_DELAY)


def read(hosts):
    connection = connect(hosts[0])
    channel = channel_of(connection)
    count = channel.queue_declare(QUEUE, passive=True).method.message_count
    numbers = []
    # One that has none for so long has no more.
    for method, _, body in channel.consume(QUEUE, inactivity_timeout=10):
        if method is None:
            break
        numbers.append(int(body))
        if len(numbers) >= count:
            break
    # They are put back.
    connection.close()
    return sorted(set(numbers))


logging.disable(logging.CRITICAL)
if sys.argv[1] == "write":
    write(sys.argv[2:])
else:
    print(json.dumps({"numbers": read(sys.argv[2:])}))
