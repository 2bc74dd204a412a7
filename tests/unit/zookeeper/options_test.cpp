#include "backends/zookeeper/options.hpp"

#include <gtest/gtest.h>

#include <string>

#include "tests/support/refusals.hpp"

namespace dlock::zookeeper {

namespace {

using namespace std::chrono_literals;

Options parse(const std::string& url, std::chrono::nanoseconds lease = 30s) {
  return parse_options({.url = Url::parse(url),
                        .holder = "host:17:my program",
                        .lease = lease,
                        .response_timeout = 2s,
                        .connect_timeout = 5s});
}

TEST(ZooKeeperOptions, HaveDefaults) {
  const Options options = parse("zookeeper://");
  EXPECT_EQ(options.endpoint(), "localhost:2181");
  EXPECT_EQ(options.chroot, "");
  EXPECT_EQ(options.prefix, "/dlock");
  EXPECT_EQ(options.strategy, Strategy::sequential);
  EXPECT_EQ(options.layout, Layout::curator);
  EXPECT_EQ(options.session_timeout, 30s);
  EXPECT_EQ(options.sessions, 4U);
  EXPECT_FALSE(options.digest);
}

TEST(ZooKeeperOptions, AreTakenFromTheUrl) {
  const Options options = parse(
      "zookeeper://h1:7001,h2,[::1]:7003/a/b?strategy=sequential-herd&prefix=/locks/x&layout=kazoo&session_timeout=12s"
      "&auth=digest:me:s%3Acret");
  EXPECT_EQ(options.endpoint(), "h1:7001,h2:2181,[::1]:7003/a/b");
  EXPECT_EQ(options.connect_string(), "h1:7001,h2:2181,::1:7003/a/b");
  EXPECT_EQ(options.chroot, "/a/b");
  EXPECT_EQ(options.prefix, "/locks/x");
  EXPECT_EQ(options.strategy, Strategy::sequential_herd);
  EXPECT_EQ(options.layout, Layout::kazoo);
  EXPECT_EQ(options.session_timeout, 12s);
  EXPECT_EQ(options.digest, "me:s:cret");
}

TEST(ZooKeeperOptions, TheLeaseIsTheSessionTimeoutUnlessOneIsGiven) {
  EXPECT_EQ(parse("zookeeper://h", 10s).session_timeout, 10s);
  EXPECT_EQ(parse("zookeeper://h?session_timeout=500ms", 10s).session_timeout, 500ms);
  EXPECT_EQ(parse("zookeeper://h", 1500001us).session_timeout, 1501ms) << "never less than was asked for";
}

TEST(ZooKeeperOptions, MayBeAtTheirBounds) {
  EXPECT_EQ(parse("zookeeper://h?strategy=ephemeral").strategy, Strategy::ephemeral);
  EXPECT_EQ(parse("zookeeper://h?sessions=1").sessions, 1U);
  EXPECT_EQ(parse("zookeeper://h?sessions=16").sessions, 16U);
  EXPECT_EQ(parse("zookeeper://h/").chroot, "");
  EXPECT_EQ(parse("zookeeper://h?prefix=").prefix, "");
  EXPECT_EQ(parse("zookeeper://h?prefix=/").prefix, "");
  EXPECT_EQ(parse("zookeeper://h/chroot?prefix=/zookeeper").prefix, "/zookeeper") << "below a chroot";
  EXPECT_EQ(parse("zookeeper://h?prefix=/.a/..b/zookeeper").prefix, "/.a/..b/zookeeper");
}

TEST(ZooKeeperOptions, SayWhatNoLockCanBeCalled) {
  EXPECT_TRUE(parse("zookeeper://h?prefix=").problem_with("zookeeper"));
  for (const std::string url : {"zookeeper://h", "zookeeper://h/a?prefix="}) {
    EXPECT_FALSE(parse(url).problem_with("zookeeper")) << url;
  }
  EXPECT_FALSE(parse("zookeeper://h?prefix=").problem_with("a"));
}

TEST(ZooKeeperOptions, NameWhatIsWrong) {
  test::expect_refused([](const std::string& url) { return parse(url); },
                       {
                           {"zookeeper://me@h", "user"},
                           {"zookeeper://me:hidden@h", "user"},
                           {"zookeeper://a%2Cb", "host"},
                           {"zookeeper://a%2Fb", "host"},
                           {"zookeeper://h/a/", "path"},
                           {"zookeeper://h/a//b", "path"},
                           {"zookeeper://h/a/../b", "path"},
                           {"zookeeper://h/.", "path"},
                           {"zookeeper://h?strategy=magic", "strategy"},
                           {"zookeeper://h?prefix=locks", "prefix"},
                           {"zookeeper://h?prefix=/a/", "prefix"},
                           {"zookeeper://h?prefix=/a%0ab", "prefix"},
                           {"zookeeper://h?prefix=/%ff", "prefix"},
                           {"zookeeper://h?prefix=/zookeeper", "prefix"},
                           {"zookeeper://h?prefix=/zookeeper/locks", "prefix"},
                           {"zookeeper://h?layout=etcd", "layout"},
                           {"zookeeper://h?session_timeout=1ms", "session_timeout"},
                           {"zookeeper://h?session_timeout=48h", "session_timeout"},
                           {"zookeeper://h?session_timeout=forever", "session_timeout"},
                           {"zookeeper://h?session_timeout=soon", "session_timeout"},
                           {"zookeeper://h?sessions=0", "is not a number from 1 to 16"},
                           {"zookeeper://h?sessions=17", "is not a number from 1 to 16"},
                           {"zookeeper://h?sessions=-1", "is not a number from 1 to 16"},
                           {"zookeeper://h?sessions=4x", "is not a number from 1 to 16"},
                           {"zookeeper://h?sessions=99999999999999999999", "is not a number from 1 to 16"},
                           {"zookeeper://h?sessions=", "is not a number from 1 to 16"},
                           {"zookeeper://h?auth=hidden", "auth"},
                           {"zookeeper://h?auth=sasl:me:hidden", "auth"},
                           {"zookeeper://h?auth=digest:hidden", "auth"},
                           {"zookeeper://h?auth=digest::hidden", "auth"},
                           {"zookeeper://h?auth=digest:me:", "auth"},
                           {"zookeeper://h?colour=red", "colour"},
                           {"zookeeper://h?prefix=/" + std::string(600, 'x'), "prefix"},
                       });
  test::expect_refused([](const std::string& url) { return parse(url, 10ms); }, {{"zookeeper://h", "lease"}});
}

}  // namespace

}  // namespace dlock::zookeeper
