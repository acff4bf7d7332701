#!/usr/bin/env bash
# Installs OpenSDN's own client library of the Config API from PyPI, and prints the path of a Python that has it. A second
# call finds it there and returns at once.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
digest=$(cat "$here/requirements.txt" "$here/install.sh" | sha256sum | cut -c1-12)
cache=${XDG_CACHE_HOME:-$HOME/.cache}/opensdn/contrail-api-client
out=$cache/$digest
if [ -e "$out/whole" ]; then echo "$out/bin/python"; exit 0; fi

command -v python3 >/dev/null && python3 -m venv --help >/dev/null 2>&1 || {
  echo "install.sh: Python 3 with venv is needed: install it (https://www.python.org)" >&2
  exit 1
}
mkdir -p "$cache"
exec 9>"$cache/lock"
flock 9                       # two runs at once: the second waits and finds the work done
if [ -e "$out/whole" ]; then echo "$out/bin/python"; exit 0; fi
# At its own place from the start: programs of a virtual environment have its path in them. One that was interrupted is
# not whole.
rm -rf "$out"
python3 -m venv "$out"
"$out/bin/python" -m pip install --quiet --disable-pip-version-check --no-input \
  --requirement "$here/requirements.txt" >&2
"$out/bin/python" -W ignore -c 'from vnc_api import vnc_api' >&2
touch "$out/whole"
echo "$out/bin/python"
