#!/usr/bin/env bash
# Prints where Java 8 is, without which Cassandra 3.11 does not run. Debian has none any more, so it is what JAVA8_HOME
# names.
set -euo pipefail
[ -x "${JAVA8_HOME:-}/bin/java" ] || {
  echo "Cassandra 3.11 needs Java 8, which Debian does not have: set JAVA8_HOME to its folder" >&2
  exit 1
}
echo "$JAVA8_HOME"
