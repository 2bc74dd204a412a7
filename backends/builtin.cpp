// The backends that this build contains. A list instead of self-registering statics, which linkers drop from static
// libraries.
#include "core/spi/registry.hpp"

#ifdef DLOCK_WITH_ETCD
#include "backends/etcd/etcd_backend.hpp"
#endif
#ifdef DLOCK_WITH_FILE
#include "backends/file/file_backend.hpp"
#endif
#ifdef DLOCK_WITH_MEMORY
#include "backends/memory/memory_backend.hpp"
#endif
#ifdef DLOCK_WITH_MYSQL
#include "backends/mysql/mysql_backend.hpp"
#endif
#ifdef DLOCK_WITH_POSTGRES
#include "backends/postgres/postgres_backend.hpp"
#endif
#ifdef DLOCK_WITH_REDIS
#include "backends/redis/redis_backend.hpp"
#endif
#ifdef DLOCK_WITH_ZOOKEEPER
#include "backends/zookeeper/zookeeper_backend.hpp"
#endif

namespace dlock::detail {

void register_builtin_backends([[maybe_unused]] RegisterFunction add) {
#ifdef DLOCK_WITH_ETCD
  add("etcd", etcd::make_etcd_backend);
  add("etcds", etcd::make_etcd_backend);
#endif
#ifdef DLOCK_WITH_FILE
  add("file", file::make_file_backend);
#endif
#ifdef DLOCK_WITH_MEMORY
  add("memory", memory::make_memory_backend);
#endif
#ifdef DLOCK_WITH_MYSQL
  add("mariadb", mysql::make_mysql_backend);
  add("mysql", mysql::make_mysql_backend);
#endif
#ifdef DLOCK_WITH_POSTGRES
  add("postgres", postgres::make_postgres_backend);
  add("postgresql", postgres::make_postgres_backend);
#endif
#ifdef DLOCK_WITH_REDIS
  add("redis", redis::make_redis_backend);
  add("redis-cluster", redis::make_redis_backend);
  add("redis-sentinel", redis::make_redis_backend);
  add("rediss", redis::make_redis_backend);
  add("rediss-cluster", redis::make_redis_backend);
  add("rediss-sentinel", redis::make_redis_backend);
#endif
#ifdef DLOCK_WITH_ZOOKEEPER
  add("zookeeper", zookeeper::make_zookeeper_backend);
#endif
}

}  // namespace dlock::detail
