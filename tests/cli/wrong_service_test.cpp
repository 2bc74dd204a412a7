// Another service than the URL names is at that port: dlock says which it probably is.
#include <vector>

#include "support/cli_test.hpp"
#include "tests/support/etcd_server.hpp"
#include "tests/support/redis_sentinel.hpp"
#include "tests/support/redis_server.hpp"
#include "torture/rig/tcp_proxy.hpp"

namespace dlock::cli::test {
namespace {

using dlock::test::EtcdServer;
using dlock::test::RedisSentinel;
using dlock::test::RedisServer;
using testing::HasSubstr;

TEST(WrongService, Status_SuggestsTheRightScheme) {
  const RedisServer redis;
  const RedisServer redis_tls{{.tls = true}};
  const RedisSentinel sentinel({.services = {{.master = redis.port()}}});
  const EtcdServer etcd;
  const EtcdServer etcd_tls{{.tls = true}};
  // It passes an end on in good order, also where etcd leaves bytes unread, whose end is a reset.
  const rig::TcpProxy to_etcd(rig::Endpoint::loopback(etcd.port()));
  const std::string is_sentinel = "this is a sentinel; use redis-sentinel://";
  const std::string no_tls = "perhaps the server does not use TLS at this port";
  const std::string only_tls = "; perhaps this port speaks TLS only";
  const std::string service_name = "&service_name=mymaster";
  struct Row {
    std::string scheme;
    std::uint16_t port;
    std::string hint;
    int status;
    std::string parameters = {};
  };
  const std::vector<Row> rows{
      {"redis", sentinel.port(), is_sentinel, 78},
      {"redis-cluster", sentinel.port(), is_sentinel, 78},
      {"redis-sentinel", redis.port(), "this server is not a sentinel", 69, service_name},
      {"rediss", redis.port(), no_tls, 69},
      {"rediss-cluster", redis.port(), no_tls, 69},
      {"rediss-sentinel", sentinel.port(), no_tls, 69, service_name},
      {"rediss-sentinel", sentinel.port(), no_tls, 69, service_name + "&sentinel_tls=off"},
      {"redis", redis_tls.port(), only_tls, 69},
      {"etcds", to_etcd.port(), "the server closed the connection; " + no_tls, 69},
      {"etcd", etcd_tls.port(), only_tls, 69},
  };
  for (const auto& [scheme, port, hint, status, parameters] : rows) {
    const std::string url = scheme + "://127.0.0.1:" + std::to_string(port) + "?response_timeout=1s" + parameters;
    const Finished result = run({dlock_path(), "status", "--url", url, "job"});
    EXPECT_THAT(result.err, HasSubstr(hint)) << url;
    EXPECT_EQ(result.status, status) << url;
  }
  const Finished doctor =
      run({dlock_path(), "doctor", "--url", "redis://127.0.0.1:" + std::to_string(sentinel.port())});
  EXPECT_THAT(doctor.out, HasSubstr(" is a sentinel; use redis-sentinel://"));
  EXPECT_EQ(doctor.status, 1);
}

}  // namespace
}  // namespace dlock::cli::test
