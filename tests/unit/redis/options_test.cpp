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

TEST(RedisOptions, NameWhatIsWrong) {
  test::expect_refused(&options_of, {
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
                                        {"rediss://host?tls_cert=/c.pem", "tls_key"},
                                        {"redis://host?colour=red", "colour"},
                                        {"redis://host?prefix=" + std::string(200, 'x'), "prefix"},
                                        {"redis://me:hidden@a,b", "host"},
                                        {"redis://me:hidden@host/x", "path"},
                                        {"redis://me:hidden@host?x=y", "x"},
                                    });
}

}  // namespace

}  // namespace dlock::redis
