#include "backends/zookeeper/options.hpp"

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

// All but the defaults.
std::string described(const Options& options) {
  std::string out = options.endpoint() + " chroot=" + options.chroot + " prefix=" + options.prefix;
  if (options.strategy != Strategy::sequential) out += " strategy=" + std::string(to_string(options.strategy));
  if (options.layout == Layout::kazoo) out += " kazoo";
  if (options.session_timeout != 30s) out += " timeout=" + std::to_string(options.session_timeout.count());
  if (options.sessions != 4) out += " sessions=" + std::to_string(options.sessions);
  if (options.digest) out += " digest=" + *options.digest;
  return out;
}

TEST(ZooKeeperOptions, Url_SetsThem) {
  for (const auto& [url, options] : std::vector<std::pair<std::string, std::string>>{
           {"zookeeper://", "localhost:2181 chroot= prefix=/dlock"},
           {"zookeeper://h1:7001,h2,[::1]:7003/a/b?strategy=sequential-herd&prefix=/locks/x&layout=kazoo"
            "&session_timeout=12s&auth=digest:me:s%3Acret",
            "h1:7001,h2:2181,[::1]:7003/a/b chroot=/a/b prefix=/locks/x strategy=sequential-herd kazoo timeout=12000 "
            "digest=me:s:cret"},
           {"zookeeper://h?strategy=ephemeral", "h:2181 chroot= prefix=/dlock strategy=ephemeral"},
           {"zookeeper://h?sessions=1", "h:2181 chroot= prefix=/dlock sessions=1"},
           {"zookeeper://h?sessions=16", "h:2181 chroot= prefix=/dlock sessions=16"},
           {"zookeeper://h/?prefix=", "h:2181 chroot= prefix="},
           {"zookeeper://h?prefix=/", "h:2181 chroot= prefix="},
           {"zookeeper://h/chroot?prefix=/zookeeper", "h:2181/chroot chroot=/chroot prefix=/zookeeper"},
           {"zookeeper://h?prefix=/.a/..b/zookeeper", "h:2181 chroot= prefix=/.a/..b/zookeeper"},
       }) {
    EXPECT_EQ(described(parse(url)), options);
  }
  EXPECT_EQ(parse("zookeeper://h1:7001,[::1]:7003/a/b").connect_string(), "h1:7001,::1:7003/a/b");
  EXPECT_EQ(parse("zookeeper://h?session_timeout=500ms", 10s).session_timeout, 500ms);
  EXPECT_EQ(parse("zookeeper://h", 1500001us).session_timeout, 1501ms) << "never less than the lease";
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
