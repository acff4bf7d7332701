#!/bin/bash
# In the place of the image's: the same daemon with the same options. A node that starts waits for the others to hear
# of it, usually for half a minute; on one machine they hear at once.
shift
# As cassandra-env.sh.
[ "${LOCAL_JMX-}" != no ] || set -- -Dcom.sun.management.jmxremote.authenticate=true \
  -Dcom.sun.management.jmxremote.password.file="$PWD/configuration/jmxremote.password" "$@"
exec "$JAVA_HOME/bin/java" -cp "$CASSANDRA_JARS/*" -javaagent:"$CASSANDRA_JARS/jamm-0.3.0.jar" \
  -XX:+UseSerialGC -XX:TieredStopAtLevel=1 -Xss512k ${JVM_EXTRA_OPTS-} -Dcassandra-foreground=yes \
  -Dcassandra.storagedir="$PWD" -Dcassandra.logdir="$PWD" -Djava.io.tmpdir="$PWD" -Dcassandra.ring_delay_ms=5000 \
  -Dcassandra.skip_wait_for_gossip_to_settle=0 \
  -Dlogback.configurationFile="$CASSANDRA_LOGBACK/logback.xml" "$@" org.apache.cassandra.service.CassandraDaemon
