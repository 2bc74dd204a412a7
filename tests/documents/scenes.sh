# What has to be there before a block is run, and its page does not start: services, and holders of locks. Source it.

# Once for each page.
set_scene() {
  case $page in
    docs/recipes.md | docs/cli.md | docs/torture.md)
      export DLOCK_URL=redis://locks.example.net
      start_redis
      ;;
  esac
  case $page in
    docs/recipes.md | docs/cli.md | docs/backends/postgres.md) make_database ;;
  esac
  case $page in
    # The recipes add it.
    docs/cli.md) psql app -q -c 'ALTER TABLE orders ADD COLUMN fence bigint NOT NULL DEFAULT 0' ;;
  esac
}

before_block() { # the one that "block" says
  case $page:$(< "$block.heading") in
    'docs/cli.md:Inspect locks')
      export DLOCK_URL=redis://locks.example.net/1
      dlock run backup -- true
      hold nightly-report -- /opt/report.sh
      hold --permits 4 uploads -- ./upload
      hold --permits 4 uploads -- ./upload
      hold --shared prices -- ./read-prices
      hold --shared prices -- ./read-prices
      ;;
    'docs/cli.md:Forget names that are no longer used')
      # A name stays whose last token is newer than a minute.
      export DLOCK_URL=file:///run/lock/earlier
      faketime -f -5m dlock run invoice/4711 -- true
      ;;
    'docs/cli.md:Watch jobs' | 'docs/cli.md:Choose a lock service by measuring') export DLOCK_URL=redis://locks.example.net ;;
    'docs/migration.md:From an earlier revision of dlock')
      mkdir src
      printf 'auto lease = client.lock("a").acquire();\n' > src/job.cpp
      ;;
    'docs/backends/etcd.md:TLS')
      end_etcd
      start_etcd_with_certificates
      ;;
    'docs/backends/etcd.md:Together with other lockers')
      end_etcd
      unset "${!ETCDCTL_@}"
      start_etcd /run/etcd-plain
      ;;
  esac
}

# A lock, until the page has ended.
hold() { # WORD of dlock run...
  printf '%q ' dlock run --hold-at-least 1h "$@" > "$block.hold"
  let_go_on "$block.hold.out" "$block.hold"
  : > "$block.hold.out"
}
