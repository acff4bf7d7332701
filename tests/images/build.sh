#!/usr/bin/env bash
# Builds the image of a real service as an OCI archive, and prints the archive's path. The
# services replace OpenSDN's own images in the lab; only tests use them, which is why
# they are not in deploy/. Programs come from Debian's archive, jars from Maven's; what has been
# built before is found again.
#
#   build.sh redis | rabbitmq | zookeeper | cassandra | cassandra-3.11 | stand-in
#
# cassandra-3.11 is OpenSDN's own version. It needs Java 8, which of Debian's suites only sid has.
#
# The last is a program of ours, tests/stand-in, for components whose own image cannot be had.
# In the folder of each: `packages`, names and upstream versions for apt; `Dockerfile`; `root`,
# files that are added; and for Java `pom.xml` with `jars.sha256`, the jars it resolves to
# (build.sh NAME --lock writes it again; build.sh NAME --jars fetches them alone and prints the folder).
set -euo pipefail
cd "$(dirname "$0")/../.."
source gate/cache.sh
source deploy/images/archive.sh
source deploy/images/program.sh

service=${1:-}
readonly service folder=tests/images/$service
[ -n "$service" ] && { [ -f "$folder/Dockerfile" ] || { [ -f "$folder/pom.xml" ] && [ -n "${2:-}" ]; }; } || {
  echo "usage: build.sh redis|rabbitmq|zookeeper|cassandra|cassandra-3.11|stand-in" >&2
  exit 2
}
# Of Debian, unless the list of packages names another.
suite=$(sed -n 's/^# suite: //p' "$folder/packages" 2>/dev/null) || true
readonly suite=${suite:-bookworm}
# The plugin of Maven that copies jars, and the jars that are for other machines.
readonly COPY_JARS=org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy-dependencies
readonly OTHER_MACHINES='-(osx|windows)-|-linux-(aarch_64|riscv64)'
# Neither a service nor a shell script needs these.
readonly LEFT_OUT=(usr/share/{doc,man,info,locale,lintian,bug,perl,perl5,python3,bash-completion}
  usr/lib/{python3,python3.11,systemd} usr/lib/x86_64-linux-gnu/{perl,perl-base,gconv}
  usr/lib/x86_64-linux-gnu/libperl.so.* var/{cache,log} var/lib/{apt,dpkg} etc/apt)

# Programs and libraries of Debian, unpacked and no more: no script of a package runs, so the
# result depends on the packages alone.
debian_root() { # debian_root FOLDER
  local packages
  need_for_images mmdebstrap mmdebstrap
  packages=$(grep -v '^#' "$folder/packages" | paste -sd,)
  # Lists are signed, and those of a mirror that lags behind are good enough.
  mmdebstrap --quiet --mode=root --variant=extract --include="$packages" \
    --aptopt='APT::Install-Recommends "false"' --aptopt='Acquire::Check-Valid-Until "false"' "$suite" "$1" >&2 ||
    image_stop "apt did not give $packages" \
      "apt-cache madison NAME, for the version in $folder/packages"
  # shellcheck disable=SC2086 # patterns
  (cd "$1" && rm -rf ${LEFT_OUT[*]})
}

# What the packages' scripts would have made: a user to run as, and places to write to.
habitable() { # habitable FOLDER
  local root=$1
  printf 'root:x:0:0::/root:/bin/sh\nservice:x:1000:1000::/data:/bin/sh\n' >"$root/etc/passwd"
  printf 'root:x:0:\nservice:x:1000:\n' >"$root/etc/group"
  printf 'passwd: files\ngroup: files\nhosts: files dns\n' >"$root/etc/nsswitch.conf"
  mkdir -p "$root"/{data,proc,sys,root,var/log,var/cache}
  chmod 1777 "$root/data" "$root/tmp" "$root/var/log"
}

resolve_jars() { # resolve_jars FOLDER
  need_for_images mvn maven
  image_step "fetching the jars of $service"
  local log
  log=$(mvn --quiet --batch-mode --no-transfer-progress --file "$folder/pom.xml" "$COPY_JARS" \
    -DincludeScope=runtime -DoutputDirectory="$1" 2>&1) || {
    echo "$log" >&2
    image_stop "Maven did not give the jars of $folder/pom.xml"
  }
}

# Only the jars that are in the lock, and only with those contents.
locked_jars() { # locked_jars FOLDER
  local all=$1.all
  resolve_jars "$all"
  (cd "$all" && sha256sum --check --quiet "$OLDPWD/$folder/jars.sha256" >&2) ||
    image_stop "the jars are not those of $folder/jars.sha256" "tests/images/build.sh $service --lock"
  mkdir -p "$1"
  cut -c67- "$folder/jars.sha256" | (cd "$all" && xargs mv -t "$1")
  rm -rf "$all"
}

lock_jars() {
  local jars
  jars=$(mktemp -d)
  resolve_jars "$jars"
  (cd "$jars" && find . -name '*.jar' -printf '%P\n' | grep -Ev -- "$OTHER_MACHINES" |
    LC_ALL=C sort | xargs sha256sum) >"$folder/jars.sha256"
  rm -rf "$jars"
  image_step "wrote $folder/jars.sha256, $(wc -l <"$folder/jars.sha256") jars"
}

# The folder that the Dockerfile copies.
make_context() { # make_context FOLDER
  local root=$1/root
  image_step "fetching the packages of $service"
  debian_root "$root"
  habitable "$root"
  [ ! -f "$folder/pom.xml" ] || locked_jars "$root/jars"
  [ ! -d "$folder/root" ] || cp -r "$folder/root/." "$root/"
  [ ! -d "$folder/bin" ] || cp -r "$folder/bin" "$1/"
}

# For servers that run as processes of this machine.
cached_jars() {
  local jars
  jars=$OPENSDN_CACHE/jars/$service-$(digest_of <"$folder/jars.sha256")
  mkdir -p "$OPENSDN_CACHE/jars"
  exec 9>"$OPENSDN_CACHE/jars/$service.lock"
  flock 9
  if [ ! -d "$jars" ]; then
    rm -rf "$jars".new*
    locked_jars "$jars.new" 9>&-
    mv "$jars.new" "$jars"
  fi
  exec 9>&-
  echo "$jars"
}

case ${2:-} in
--lock) lock_jars && exit ;;
--jars) cached_jars && exit ;;
esac
if [ "$service" = stand-in ]; then
  program_archive opensdn-stand-in opensdn-tests-stand-in "$folder/Dockerfile"
  exit
fi
[ "$(id -u)" = 0 ] || image_stop "only root can unpack a system" "sudo tests/images/build.sh $service"
version=$(sed -n 's/^LABEL org.opencontainers.image.version="\(.*\)".*/\1/p' "$folder/Dockerfile")
digest=$(find "$folder" tests/images/build.sh deploy/images/archive.sh -type f -print0 | sort -z |
  xargs -0 sha256sum | digest_of)
image_archive "opensdn-tests-$service" "$version" "$digest" make_context "$folder/Dockerfile"
