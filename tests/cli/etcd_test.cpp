// Locks in etcd, from the command line: --lease is the session's, and what is wrong with users is said.
#include <cstdint>
#include <string>

#include "support/cli_test.hpp"
#include "tests/support/etcd_server.hpp"
#include "torture/rig/tcp_proxy.hpp"

namespace dlock::cli::test {
namespace {

using dlock::test::EtcdServer;
using testing::HasSubstr;

class EtcdLease : public testing::Test {
 protected:
  // What the server says of the only lease that it has while a command runs.
  std::string granted(const std::string& parameters, const std::string& lease) {
    Process run({dlock_path(), "run", "--url", server.url(parameters), "--lease", lease, "job", "--", "sh", "-c",
                 "echo in; cat"});
    EXPECT_EQ(run.line(), "in");
    const std::string leases = server.ctl({"lease", "list"});  // "found 1 leases", then one a line
    const auto begin = leases.find('\n') + 1;
    const std::string answer =
        server.ctl({"lease", "timetolive", leases.substr(begin, leases.find('\n', begin) - begin)});
    EXPECT_EQ(run.finish().status, 0);
    return answer;
  }

  EtcdServer server;
};

TEST_F(EtcdLease, IsTheSessionsTtlInWholeSeconds) {
  EXPECT_THAT(granted("", "5s"), HasSubstr("TTL(5s)"));
  EXPECT_THAT(granted("", "4100ms"), HasSubstr("TTL(5s)"));
  EXPECT_THAT(granted("lease=2m", "5s"), HasSubstr("TTL(5s)"));
}

TEST_F(EtcdLease, MayBeShorterOrLongerThanAnySession) {
  EXPECT_THAT(granted("", "50ms"), HasSubstr("TTL(2s)"));
  EXPECT_THAT(granted("", "10m"), HasSubstr("TTL(300s)"));
}

TEST_F(EtcdLease, IsRefusedWhereTheUrlSaysAnotherTime) {
  EXPECT_THAT(granted("session_ttl=7s", "7s"), HasSubstr("TTL(7s)"));
  for (const std::string lease : {"5s", "9s"}) {
    const Finished refused =
        run({dlock_path(), "run", "--url", server.url("session_ttl=7s"), "--lease", lease, "job", "--", "true"});
    EXPECT_EQ(refused.status, 64);
    EXPECT_THAT(refused.err, HasSubstr("--lease (" + lease.substr(0, 1) + ".0 s) contradicts session_ttl=7s"));
  }
}

TEST_F(EtcdLease, IsNotTakenForQuestions) {
  const std::int64_t revision = server.revision();
  for (int i = 0; i < 5; ++i) {
    for (const std::string verb : {"status", "leader"}) (void)run({dlock_path(), verb, "--url", server.url(), "job"});
    EXPECT_EQ(run({dlock_path(), "list", "--url", server.url()}).status, 0);
  }
  EXPECT_EQ(server.revision(), revision) << "nothing was written";
  EXPECT_THAT(server.ctl({"lease", "list"}), HasSubstr("found 0 leases"));
}

// Authentication may have been switched off for a while.
TEST_F(EtcdLease, AUserWhereThereAreNoneIsNotAskedFor) {
  const std::string url = "etcd://me:hunter2@" + server.address();
  EXPECT_EQ(run({dlock_path(), "run", "--url", url, "job", "--", "true"}).status, 0);
  EXPECT_THAT(run({dlock_path(), "doctor", "--url", url}).out, HasSubstr("authentication is not enabled"));
}

TEST(EtcdTls, APortWithoutItIsToldFromAServerThatHangsUp) {
  const EtcdServer server;
  // It passes an end on in good order, also where etcd leaves bytes unread, whose end is a reset.
  const rig::TcpProxy proxy(rig::Endpoint::loopback(server.port()));
  const std::string url = "etcds://127.0.0.1:" + std::to_string(proxy.port());
  const Finished result = run({dlock_path(), "status", "--url", url, "job"});
  EXPECT_EQ(result.status, 69);
  EXPECT_THAT(result.err,
              HasSubstr("the server closed the connection; perhaps the server does not use TLS at this port"));
}

TEST(EtcdTls, APortOfTlsIsToldFromAServerThatHangsUp) {
  const EtcdServer server{{.tls = true}};
  const Finished result = run({dlock_path(), "status", "--url", "etcd://" + server.address(), "job"});
  EXPECT_EQ(result.status, 69);
  EXPECT_THAT(result.err, HasSubstr("; perhaps this port speaks TLS only"));
}

}  // namespace
}  // namespace dlock::cli::test
