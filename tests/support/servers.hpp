// The servers that tests can start in this build. Link dlock_test_servers.
#pragma once

#if DLOCK_TEST_WITH_REDIS
#include "tests/support/redis_cluster.hpp"
#include "tests/support/redis_sentinel.hpp"
#include "tests/support/redis_server.hpp"
#endif
#if DLOCK_TEST_WITH_ZOOKEEPER
#include "tests/support/zookeeper_client.hpp"
#include "tests/support/zookeeper_server.hpp"
#endif
#if DLOCK_TEST_WITH_ETCD
#include "tests/support/etcd_server.hpp"
#endif
#if DLOCK_TEST_WITH_MYSQL
#include "tests/support/mysql_server.hpp"
#endif
#if DLOCK_TEST_WITH_POSTGRES
#include "tests/support/pgbouncer.hpp"
#include "tests/support/postgres_server.hpp"
#endif
