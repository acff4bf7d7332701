#!/bin/bash
# Stands in for Kafka's own script. What a keystore of Java has becomes a file that tests/stand-in reads, if the password
# that the configuration says is the right one.
set -eu
configuration=$1
[[ $# = 3 && $2 == --override && $3 == broker.id=+([0-9]) ]]
setting() { sed -n "s/^$1=//p" "$configuration"; }
umask 077
setting ssl.keystore.password >/tmp/keystore.password
openssl pkcs12 -in "$(setting ssl.keystore.location)" -passin file:/tmp/keystore.password -nodes -out /tmp/keystore.pem
[ -s "$(setting ssl.truststore.location)" ]
echo "ssl.keystore.location=/tmp/keystore.pem" >/tmp/own.properties
exec /opensdn-stand-in kafka --ask-every 20 --config "$configuration" --config /tmp/own.properties
