#include "backends/redis/options.hpp"

#include <gtest/gtest.h>

#include <string>

#include "tests/unit/support/refusals.hpp"

namespace dlock::redis {

namespace {

Options options_of(const std::string& url) {
  return parse_options({.url = Url::parse(url),
                        .holder = "host:17:my program",
                        .lease = {},
                        .response_timeout = {},
                        .connect_timeout = {}});
}

TEST(RedisOptions, HaveDefaults) {
  const Options options = options_of("redis://");
  EXPECT_EQ(options.endpoint(), "localhost:6379");
  EXPECT_EQ(options.db, 0U);
  EXPECT_EQ(options.prefix, "dlock:");
  EXPECT_EQ(options.strategy, Strategy::queue);
  EXPECT_EQ(options.replicas_ack, 0U);
  EXPECT_FALSE(options.user || options.password || options.tls);
}

TEST(RedisOptions, AreTakenFromTheUrl) {
  const Options options = options_of("redis://me:s%40cret@[::1]:7000/3?strategy=poll&prefix=a:&replicas_ack=2");
  EXPECT_EQ(options.endpoint(), "[::1]:7000");
  EXPECT_EQ(options.user, "me");
  EXPECT_EQ(options.password, "s@cret");
  EXPECT_EQ(options.db, 3U);
  EXPECT_EQ(options.strategy, Strategy::poll);
  EXPECT_EQ(options.prefix, "a:");
  EXPECT_EQ(options.replicas_ack, 2U);
}

TEST(RedisOptions, KnowThePasswordOfTheDefaultUser) {
  const Options options = options_of("redis://:secret@host");
  EXPECT_FALSE(options.user);
  EXPECT_EQ(options.password, "secret");
}

TEST(RedisOptions, AnEmptyPrefixMeansTheNamesThemselves) {
  EXPECT_EQ(options_of("redis://host?prefix=").prefix, "");
}

TEST(RedisOptions, TlsComesWithItsScheme) {
  const Options options = options_of("rediss://host?tls_ca=/ca.pem&tls_cert=/c.pem&tls_key=/k.pem");
  ASSERT_TRUE(options.tls);
  EXPECT_EQ(options.tls->ca_file, "/ca.pem");
  EXPECT_EQ(options.tls->cert_file, "/c.pem");
  EXPECT_EQ(options.tls->key_file, "/k.pem");
  EXPECT_TRUE(options_of("rediss://host").tls);
}

TEST(RedisOptions, ShowTheClientByItsLabelWithoutSpaces) {
  EXPECT_EQ(options_of("redis://host").client_name, "dlock:my_program");
}

TEST(RedisOptions, NameSentinels) {
  const Options options = options_of(
      "redis-sentinel://me:pw@a,b:7,[::1]/2?service_name=ours&sentinel_user=you&sentinel_password=x&replicas_ack=all");
  EXPECT_EQ(options.endpoint(), "ours");
  EXPECT_EQ(options.user, "me");
  EXPECT_EQ(options.db, 2U);
  ASSERT_TRUE(options.sentinel);
  EXPECT_EQ(common::to_string(options.sentinel->hosts), "a:26379,b:7,[::1]:26379");
  EXPECT_EQ(options.sentinel->user, "you");
  EXPECT_EQ(options.sentinel->password, "x");
  EXPECT_TRUE(options.sentinel->all_replicas);
  EXPECT_EQ(options.replicas_ack, 1U);
  EXPECT_FALSE(options.tls || options.sentinel->tls);
  const Options files = options_of(
      "redis-sentinel://me@a?service_name=ours&password_file=/p&sentinel_user=you&sentinel_password_file=/s");
  ASSERT_TRUE(files.password_file && files.sentinel->password_file);
  EXPECT_EQ(files.password_file->path, "/p");
  EXPECT_EQ(files.sentinel->password_file->path, "/s");
  EXPECT_EQ(files.sentinel->password_file->parameter, "sentinel_password_file");
  EXPECT_EQ(options_of("redis-sentinel://a?service_name=ours&replicas_ack=all&replicas_min=3").replicas_ack, 3U);
  EXPECT_EQ(options_of("redis-sentinel://a?service_name=ours&replicas_ack=2").replicas_ack, 2U);
}

TEST(RedisOptions, SentinelsHaveTlsOfTheirOwn) {
  const Options both = options_of("rediss-sentinel://a?service_name=ours&tls_ca=/ca.pem");
  ASSERT_TRUE(both.tls && both.sentinel->tls);
  EXPECT_EQ(both.sentinel->tls->ca_file, "/ca.pem");
  const Options server = options_of("rediss-sentinel://a?service_name=ours&sentinel_tls=off");
  EXPECT_TRUE(server.tls && !server.sentinel->tls);
  const Options sentinel = options_of("redis-sentinel://a?service_name=ours&sentinel_tls=on&tls_ca=/ca.pem");
  ASSERT_TRUE(!sentinel.tls && sentinel.sentinel->tls);
  EXPECT_EQ(sentinel.sentinel->tls->ca_file, "/ca.pem");
}

TEST(RedisOptions, NameNodesOfACluster) {
  const Options options = options_of("redis-cluster://me:pw@a,b:7000,[::1]?replicas_ack=1&prefix={app}:");
  ASSERT_TRUE(options.cluster);
  EXPECT_EQ(common::to_string(options.cluster->hosts), "a:6379,b:7000,[::1]:6379");
  EXPECT_EQ(options.endpoint(), "a:6379") << "the first";
  EXPECT_EQ(options.user, "me");
  EXPECT_EQ(options.password, "pw");
  EXPECT_EQ(options.replicas_ack, 1U);
  EXPECT_EQ(options.prefix, "{app}:");
  EXPECT_FALSE(options.tls || options.sentinel);
  for (const std::string url : {"redis-cluster://", "redis-cluster://localhost", "redis-cluster://localhost/"}) {
    EXPECT_EQ(common::to_string(options_of(url).cluster->hosts), "localhost:6379") << url;
    EXPECT_EQ(options_of(url).db, 0U) << url;
  }
  EXPECT_FALSE(options_of("redis://a").cluster);
}

TEST(RedisOptions, AClusterMayHaveTls) {
  const Options options = options_of("rediss-cluster://a,b?tls_ca=/ca.pem&tls_cert=/c.pem&tls_key=/k.pem");
  ASSERT_TRUE(options.cluster && options.tls);
  EXPECT_EQ(options.tls->ca_file, "/ca.pem");
  EXPECT_EQ(options.tls->cert_file, "/c.pem");
  EXPECT_EQ(options.tls->key_file, "/k.pem");
}

TEST(RedisOptions, OnAClusterBracesInThePrefixAreForAHashTag) {
  for (const std::string prefix : {"{app}:", "a{", "{a}}", "{", ""}) {
    EXPECT_EQ(options_of("redis-cluster://a?prefix=" + prefix).prefix, prefix);
  }
  EXPECT_EQ(options_of("redis://a?prefix=a}").prefix, "a}") << "elsewhere they are as any others";
}

TEST(RedisOptions, NameAHundredNodesAtMost) {
  std::string url = "redis-cluster://n";
  for (int i = 1; i < 100; ++i) url += ",n" + std::to_string(i);
  EXPECT_EQ(options_of(url).cluster->hosts.size(), 100U);
  test::expect_refused(&options_of, {{url + ",one-more", "host"}});
}

TEST(RedisOptions, NameWhatIsWrong) {
  test::expect_refused(&options_of,
                       {
                           {"redis://a,b", "host"},
                           {"redis://me@host", "user"},
                           {"redis://host/x", "path"},
                           {"redis://host/-1", "path"},
                           {"redis://host/1/2", "path"},
                           {"redis://host/99999999999", "path"},
                           {"redis://host?strategy=magic", "strategy"},
                           {"redis://host?prefix=a%0ab", "prefix"},
                           {"redis://host?prefix=%ff", "prefix"},
                           {"redis://host?replicas_ack=-1", "replicas_ack"},
                           {"redis://host?replicas_ack=1000", "replicas_ack"},
                           {"redis://host?replicas_ack=", "replicas_ack"},
                           {"redis://host?tls_ca=/ca.pem", "tls_ca"},
                           {"rediss://host?tls_ca=", "tls_ca"},
                           {"redis://:hidden@host?password_file=/p", "password_file"},
                           {"redis://host?password_file=", "password_file"},
                           {"redis-sentinel://a?service_name=x&sentinel_password=hidden&sentinel_password_file=/p",
                            "sentinel_password_file"},
                           {"rediss://host?tls_cert=/c.pem", "tls_key"},
                           {"redis://host?colour=red", "colour"},
                           {"redis://host?prefix=" + std::string(200, 'x'), "prefix"},
                           {"redis://me:hidden@a,b", "host"},
                           {"redis://host?service_name=ours", "service_name"},
                           {"redis://host?replicas_ack=all", "replicas_ack"},
                           {"redis://host?allow_replica=yes", "allow_replica"},
                           {"redis-sentinel://a?service_name=x&allow_replica=1", "allow_replica"},
                           {"redis-cluster://a?allow_replica=1", "allow_replica"},
                           {"redis-sentinel://a,b", "service_name"},
                           {"redis-sentinel://a?service_name=", "service_name"},
                           {"redis-sentinel://a?service_name=a%0ab", "service_name"},
                           {"redis-sentinel://a?service_name=x&replicas_ack=some", "replicas_ack"},
                           {"redis-sentinel://a?service_name=x&replicas_ack=101", "replicas_ack"},
                           {"redis-sentinel://a?service_name=x&replicas_min=1", "replicas_min"},
                           {"redis-sentinel://a?service_name=x&replicas_ack=all&replicas_min=0", "replicas_min"},
                           {"redis-sentinel://a?service_name=x&sentinel_user=me", "sentinel_user"},
                           {"redis-sentinel://a?service_name=x&sentinel_tls=maybe", "sentinel_tls"},
                           {"redis-sentinel://a?service_name=x&tls_ca=/ca.pem", "tls_ca"},
                           {"redis-sentinel://a,b,c,d,e,f,g,h,i,j,k,l,m,n,o,p,q?service_name=x", "host"},
                           {"redis-sentinel://:hidden@a?service_name=x&sentinel_password=hid&y=z", "y"},
                           {"redis-cluster://a/1", "path"},
                           {"redis-cluster://a/0", "path"},
                           {"redis-cluster://a/x", "path"},
                           {"redis-cluster://a?prefix=a}", "prefix"},
                           {"redis-cluster://a?prefix={}", "prefix"},
                           {"redis-cluster://a?service_name=ours", "service_name"},
                           {"redis-cluster://a?sentinel_user=me", "sentinel_user"},
                           {"redis-cluster://a?sentinel_password=hidden", "sentinel_password"},
                           {"redis-cluster://a?sentinel_tls=on", "sentinel_tls"},
                           {"redis-cluster://a?replicas_ack=all", "replicas_ack"},
                           {"redis-cluster://a?replicas_min=1", "replicas_min"},
                           {"redis-cluster://a?tls_ca=/ca.pem", "tls_ca"},
                           {"rediss-cluster://a?tls_cert=/c.pem", "tls_key"},
                           {"redis-cluster://me:hidden@a/1", "path"},
                           {"redis://me:hidden@host/x", "path"},
                           {"redis://me:hidden@host?x=y", "x"},
                       });
}

}  // namespace

}  // namespace dlock::redis
