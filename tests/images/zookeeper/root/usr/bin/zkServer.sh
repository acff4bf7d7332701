#!/bin/sh
# As ZooKeeper's own script of this name is called: zkServer.sh --config FOLDER start-foreground
export ZOOCFGDIR="$2"
exec java -cp "${ZOOKEEPER_JARS:-/jars}/*" -Xms64m -Xmx256m -XX:+UseSerialGC \
  org.apache.zookeeper.server.quorum.QuorumPeerMain "$2/zoo.cfg"
