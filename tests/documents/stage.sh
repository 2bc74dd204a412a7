# Where the blocks of the documents are run; source it. A stage is a mount, network, PID and host name space of its own:
# default ports are free, host names of the documents lead to it, and what a block writes or leaves running is gone with
# it. So nothing in a block has to be replaced. It needs root.

sources=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)

# Runs this script again on a stage of its own, as the script's last statement but for what happens there. DLOCK is the
# command; TREE, a build tree, is installed on the stage; PROGRAMS, a directory, is at /media there. Either may be "-". Exits
# with 77 where this machine does not permit it.
enter_stage() { # DLOCK TREE PROGRAMS [ARGUMENT of the script...]
  if [[ -n ${DLOCK_STAGE:-} ]]; then
    set_stage "$@"
    return
  fi
  if ! unshare --mount --net --uts --pid --fork true 2> /dev/null; then
    echo "not run: needs privilege, to make name spaces"
    exit 77
  fi
  DLOCK_STAGE=$(mktemp -d)
  export DLOCK_STAGE
  trap 'rm -rf "$DLOCK_STAGE"' EXIT
  local status=0
  unshare --mount --net --uts --pid --fork --kill-child --mount-proc "$BASH" "$0" "${@:4}" || status=$?
  exit "$status"
}

set_stage() { # as enter_stage
  # The loopback interface, up: SIOCSIFFLAGS with IFF_UP.
  perl -e 'socket(my $socket, 2, 2, 0) or die; ioctl($socket, 0x8914, my $up = pack("a16s", "lo", 1)) or die'
  hostname web1
  mount --bind "$sources" /mnt
  printf '%s\n' '127.0.0.1 localhost web1 locks.example.net redis db1 db2' '127.0.1.1 host1' '127.0.1.2 host2' \
    '127.0.1.3 host3' > "$DLOCK_STAGE/hosts"
  mount --bind "$DLOCK_STAGE/hosts" /etc/hosts
  # What lies below /tmp or /home is covered soon, perhaps the build tree with its library.
  mkdir "$DLOCK_STAGE"/{local,programs,libraries}
  cp "$1"{,-bench,-torture} "$DLOCK_STAGE/programs"
  ldd "$1" | sed -n 's/.* => \(.*libdlock[^ ]*\) .*/\1/p' | xargs -r cp -t "$DLOCK_STAGE/libraries"
  mount --bind "$DLOCK_STAGE/local" /usr/local
  mkdir /usr/local/{bin,lib}
  find "$DLOCK_STAGE/libraries" -type f -exec cp -t /usr/local/lib {} +
  ldconfig -C "$DLOCK_STAGE/cache"
  mount --bind "$DLOCK_STAGE/cache" /etc/ld.so.cache
  if [[ $2 != - ]]; then cmake --install "$2" --prefix /usr/local > "$DLOCK_STAGE/install.log"; fi
  cp "$DLOCK_STAGE"/programs/* /usr/local/bin
  if [[ $3 != - ]]; then mount --bind "$3" /media; fi
  local directory
  for directory in /home /opt /srv /run /tmp; do mount -t tmpfs -o mode=1777 stage "$directory"; done
  mkdir -p /run/postgresql /run/lock /run/stand-ins /home/me
  # With a directory that a package would make.
  mkdir /run/var-lib /run/var-lib-was
  mount --bind /var/lib /run/var-lib-was
  ln -s /run/var-lib-was/* /run/var-lib
  mkdir -p /run/var-lib/prometheus/node-exporter
  mount --bind /run/var-lib /var/lib
  chown postgres /run/postgresql
  export PATH=/run/stand-ins:/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin USER=root HOME=/home/me TMPDIR=/tmp
  unset DLOCK_URL XDG_RUNTIME_DIR CDPATH
  make_stand_ins
  cd /home/me
}

# Programs that the documents leave to their readers, and those that a stage cannot have.
make_stand_ins() {
  local program
  # Readers' own. They say that they run, and under what.
  for program in /opt/report.sh /home/me/{verify-backup,read-prices,update-prices,upload,call-the-api,transfer} \
    /home/me/{migrate,server,report.sh} /run/stand-ins/rsync; do
    stand_in "$program" 'echo "${0##*/} runs, token ${DLOCK_TOKEN:-none}"'
  done
  for program in /opt/scheduler /home/me/scheduler; do
    stand_in "$program" 'echo "scheduler runs, token $DLOCK_TOKEN"; exec sleep infinity'
  done
  printf 'deploy:\n\techo deployed\n' > /home/me/Makefile
  # There is nobody but root here, and root may become another user.
  # shellcheck disable=SC2016
  stand_in /run/stand-ins/sudo \
    'if [ "$1" = -u ]; then user=$2; shift 2; set -- setpriv --reuid="$user" --regid="$user" --init-groups "$@"; fi
     exec "$@"'
  # Nothing is installed: what is named has to be here.
  # shellcheck disable=SC2016
  stand_in /run/stand-ins/apt-get \
    'for word; do case $word in install | update | -*) ;; *) dpkg-query -s "$word" > /dev/null || exit 100 ;; esac; done'
}

stand_in() { # PATH TEXT of a shell
  printf '#!/bin/sh\n%s\n' "$2" > "$1"
  chmod +x "$1"
}

# ---- Processes -------------------------------------------------------------------------------------------------------

# In a process group of its own, with a trap, so that a signal to all ends the command and leaves its status.
start() { # OUTPUT SCRIPT
  set -m
  "$BASH" -c 'trap : TERM INT; . "$1"' stage "$2" > "$1" 2>&1 < /dev/null &
  started=$!
  set +m
}
stop() { # PID SIGNAL: to all that it has started, until it has ended
  while kill -0 "$1" 2> /dev/null; do
    kill "-$2" -- "-$1" 2> /dev/null || true
    sleep 0.05
  done
  status=0
  wait "$1" || status=$?
}

await() { # COMMAND...: until it succeeds, for a minute
  local end=$((SECONDS + 60))
  until "$@" > /dev/null 2>&1; do
    ((SECONDS < end)) || {
      echo "waited in vain for: $*"
      return 1
    }
    sleep 0.05
  done
}

# ---- Services, on their default ports --------------------------------------------------------------------------------

start_redis() {
  [[ -z ${redis_runs:-} ]] || return 0
  redis_runs=yes
  mkdir /run/redis
  redis-server --appendonly yes --dir /run/redis --daemonize yes --logfile /run/redis/log > /dev/null
  await redis-cli ping
  redis-cli acl setuser user on '>password' '~*' '&*' +@all > /dev/null
}

# As Debian's package starts it; with a role for root, and the database that the documents write to.
start_postgres() {
  [[ -z ${postgres_runs:-} ]] || return 0
  postgres_runs=yes
  local programs
  programs=$(echo /usr/lib/postgresql/*/bin)
  install -d -o postgres /run/cluster
  (
    cd /run/cluster
    sudo -u postgres "$programs/initdb" --no-sync --auth-local=peer --auth-host=trust -D data > /dev/null
    sudo -u postgres "$programs/pg_ctl" -D data -l log -w start \
      -o "-c fsync=off -c listen_addresses='*' -c unix_socket_directories=/run/postgresql -c max_connections=300" > /dev/null
  )
}
make_database() {
  start_postgres
  sudo -u postgres psql -q -c 'CREATE ROLE root SUPERUSER LOGIN' -c 'CREATE ROLE "user" SUPERUSER LOGIN' \
    -c 'CREATE ROLE app' -c 'CREATE DATABASE app'
  psql app -q -c 'CREATE TABLE orders (id int, state text)' -c 'INSERT INTO orders VALUES (42, 0)'
}

# The one that a page or a scene has started, for the next one to have the ports. There are no processes but ours here.
end_etcd() {
  local process
  for process in $(etcd_processes); do kill "$process"; done
  await eval '[[ -z $(etcd_processes) ]]'
}
# A zombie holds no port.
etcd_processes() { sed -n 's/^\([0-9]*\) (etcd) [^Z].*/\1/p' /proc/[0-9]*/stat 2> /dev/null || true; }

start_etcd() { # DATA [OPTION...]
  setsid etcd --data-dir "$1" "${@:2}" > "$1.log" 2>&1 &
  await etcdctl endpoint health
}

certificate() { # NAME [OPTION of openssl...]
  openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj "/CN=$1" -keyout "$1.key" \
    -out "$1.pem" "${@:2}" 2> /dev/null
}

# It asks for certificates, whose names are its users; root has one, and etcdctl uses it.
start_etcd_with_certificates() {
  local host addresses=
  certificate ca
  certificate host1 -CA ca.pem -CAkey ca.key -addext subjectAltName=DNS:host1,DNS:host2,DNS:host3
  certificate locker -CA ca.pem -CAkey ca.key
  certificate root -CA ca.pem -CAkey ca.key
  for host in 127.0.1.1 127.0.1.2 127.0.1.3; do addresses+=,https://$host:2379; done
  export ETCDCTL_ENDPOINTS=https://host1:2379 ETCDCTL_CACERT=ca.pem ETCDCTL_CERT=root.pem ETCDCTL_KEY=root.key
  start_etcd /run/etcd-tls --listen-client-urls "${addresses#,}" --advertise-client-urls https://host1:2379 \
    --cert-file host1.pem --key-file host1.key --trusted-ca-file ca.pem --client-cert-auth
  {
    etcdctl user add root --no-password
    etcdctl user grant-role root root
    etcdctl auth enable
    etcdctl role add locker
    etcdctl role grant-permission locker readwrite dlock/ --prefix
  } > /dev/null
}
