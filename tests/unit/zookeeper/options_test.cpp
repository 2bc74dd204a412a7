#include "backends/zookeeper/options.hpp"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

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

TEST(ZooKeeperOptions, NothingGiven_IsTheDefault) {
  const Options options = parse("zookeeper://");
  EXPECT_EQ(options.endpoint(), "localhost:2181");
  EXPECT_EQ(options.chroot, "");
  EXPECT_EQ(options.prefix, "/dlock");
  EXPECT_EQ(options.strategy, Strategy::sequential);
  EXPECT_EQ(options.layout, Layout::curator);
  EXPECT_EQ(options.session_timeout, 30s) << "the lease";
  EXPECT_EQ(options.sessions, 4U);
  EXPECT_FALSE(options.digest);
}

TEST(ZooKeeperOptions, Url_IsParsed) {
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
  EXPECT_EQ(parse("zookeeper://h?session_timeout=500ms", 10s).session_timeout, 500ms);
  EXPECT_EQ(parse("zookeeper://h", 1500001us).session_timeout, 1501ms) << "never less than the lease";
  EXPECT_EQ(parse("zookeeper://h?strategy=ephemeral").strategy, Strategy::ephemeral);
  EXPECT_EQ(parse("zookeeper://h?sessions=1").sessions, 1U);
  EXPECT_EQ(parse("zookeeper://h?sessions=16").sessions, 16U);
  EXPECT_EQ(parse("zookeeper://h/").chroot, "");
  EXPECT_EQ(parse("zookeeper://h?prefix=").prefix, "");
  EXPECT_EQ(parse("zookeeper://h?prefix=/").prefix, "");
  EXPECT_EQ(parse("zookeeper://h/chroot?prefix=/zookeeper").prefix, "/zookeeper") << "below a chroot";
  EXPECT_EQ(parse("zookeeper://h?prefix=/.a/..b/zookeeper").prefix, "/.a/..b/zookeeper");
}

TEST(ZooKeeperOptions, NodeOfZookeeperItself_IsNoLock) {
  EXPECT_TRUE(parse("zookeeper://h?prefix=").problem_with("zookeeper"));
  for (const std::string url : {"zookeeper://h", "zookeeper://h/a?prefix="}) {
    EXPECT_FALSE(parse(url).problem_with("zookeeper")) << url;
  }
  EXPECT_FALSE(parse("zookeeper://h?prefix=").problem_with("a"));
}

TEST(ZooKeeperOptions, WrongUrl_IsRefusedByName) {
  const std::vector<std::pair<std::string, std::vector<std::string>>> rows = {
      {"user", {"me@h", "me:hidden@h"}},
      {"host", {"a%2Cb", "a%2Fb"}},
      {"path", {"h/a/", "h/a//b", "h/a/../b", "h/."}},
      {"strategy", {"h?strategy=magic"}},
      {"prefix",
       {"h?prefix=locks", "h?prefix=/a/", "h?prefix=/a%0ab", "h?prefix=/%ff", "h?prefix=/zookeeper",
        "h?prefix=/zookeeper/locks", "h?prefix=/" + std::string(600, 'x')}},
      {"layout", {"h?layout=etcd"}},
      {"session_timeout",
       {"h?session_timeout=1ms", "h?session_timeout=48h", "h?session_timeout=forever", "h?session_timeout=soon"}},
      {"is not a number from 1 to 16", {"h?sessions=0", "h?sessions=17"}},
      {"auth",
       {"h?auth=hidden", "h?auth=sasl:me:hidden", "h?auth=digest:hidden", "h?auth=digest::hidden",
        "h?auth=digest:me:"}},
      {"colour", {"h?colour=red"}}};
  for (const auto& [named, urls] : rows) {
    for (const std::string& url : urls) {
      test::expect_refused([](const std::string& text) { return parse(text); }, {{"zookeeper://" + url, named}});
    }
  }
  test::expect_refused([](const std::string& url) { return parse(url, 10ms); }, {{"zookeeper://h", "lease"}});
}

}  // namespace

}  // namespace dlock::zookeeper
