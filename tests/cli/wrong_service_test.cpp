// Another service than the URL says is at that port: dlock says what it probably is.
#include "support/cli_test.hpp"
#include "tests/support/redis_sentinel.hpp"
#include "tests/support/redis_server.hpp"

namespace dlock::cli::test {
namespace {

using dlock::test::RedisSentinel;
using dlock::test::RedisServer;
using testing::HasSubstr;

class WrongService : public testing::Test {
 protected:
  static std::string at(const std::string& scheme, std::uint16_t port, const std::string& parameters = {}) {
    return scheme + "://127.0.0.1:" + std::to_string(port) + "?response_timeout=1s" + parameters;
  }
  static Finished ask(const std::string& url) { return run({dlock_path(), "status", "--url", url, "job"}); }
};

TEST_F(WrongService, ASentinelIsNoServerThatLocksAreIn) {
  const RedisServer server;
  const RedisSentinel sentinel({.services = {{.master = server.port()}}});
  const std::string hint = "this is a sentinel; use redis-sentinel://";
  EXPECT_THAT(ask(at("redis", sentinel.port())).err, HasSubstr(hint));
  EXPECT_THAT(ask(at("redis-cluster", sentinel.port())).err, HasSubstr(hint));
  const Finished doctor = run({dlock_path(), "doctor", "--url", at("redis", sentinel.port())});
  EXPECT_THAT(doctor.out, HasSubstr(" is a sentinel; use redis-sentinel://"));
  EXPECT_EQ(doctor.status, 1);
  EXPECT_THAT(ask(at("redis-sentinel", server.port(), "&service_name=mymaster")).err,
              HasSubstr("this server is not a sentinel"));
}

TEST_F(WrongService, APortWithoutTlsIsToldFromASlowOne) {
  const RedisServer server;
  const RedisSentinel sentinel({.services = {{.master = server.port()}}});
  const std::string hint = "perhaps the server does not use TLS at this port";
  for (const std::string& url : {at("rediss", server.port()), at("rediss-cluster", server.port()),
                                 at("rediss-sentinel", sentinel.port(), "&service_name=mymaster"),
                                 at("rediss-sentinel", sentinel.port(), "&service_name=mymaster&sentinel_tls=off")}) {
    const Finished result = ask(url);
    EXPECT_EQ(result.status, 69);
    EXPECT_THAT(result.err, HasSubstr(hint)) << url;
  }
}

TEST_F(WrongService, APortOfTlsIsToldFromAServerThatHangsUp) {
  const RedisServer server{{.tls = true}};
  const Finished result = ask(at("redis", server.port()));
  EXPECT_EQ(result.status, 69);
  EXPECT_THAT(result.err, HasSubstr("; perhaps this port speaks TLS only"));
}

}  // namespace
}  // namespace dlock::cli::test
