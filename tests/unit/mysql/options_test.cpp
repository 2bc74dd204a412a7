#include "backends/mysql/options.hpp"

#include <gtest/gtest.h>

#include <string>

#include "tests/support/refusals.hpp"

namespace dlock::mysql {

namespace {

using namespace std::chrono_literals;

Options parse(const std::string& url) {
  return parse_options({.url = Url::parse(url),
                        .holder = "host:17:my program",
                        .lease = 30s,
                        .response_timeout = 2s,
                        .connect_timeout = 5s});
}

TEST(MysqlOptions, Defaults_AreSet) {
  const Options options = parse("mysql://");
  EXPECT_EQ(options.endpoint(), "localhost:3306");
  EXPECT_FALSE(options.user || options.password || options.password_file || options.database);
  EXPECT_EQ(options.strategy, Strategy::table);
  EXPECT_EQ(options.schema, "dlock");
  EXPECT_FALSE(options.verbatim_keys);
  EXPECT_EQ(options.pooler, Pooler::detect);
  EXPECT_FALSE(options.single_writer);
  EXPECT_EQ(options.max_connections, 10U);
  EXPECT_EQ(options.tls, Tls::off);
}

TEST(MysqlOptions, Url_SetsEachOption) {
  const Options options = parse(
      "mariadb://me:s%40cret@h1:7001,h2,[::1]:7003/my%20db?strategy=named&schema=my_locks-1$&key=verbatim"
      "&pooler=session&single_writer=true&max_connections=3&tls_ca=/ca&tls_cert=/cert&tls_key=/key");
  EXPECT_EQ(options.user, "me");
  EXPECT_EQ(options.password, "s@cret");
  EXPECT_EQ(options.database, "my db");
  EXPECT_EQ(options.endpoint(), "h1:7001,h2:3306,[::1]:7003/my db");
  EXPECT_EQ(options.endpoint_of(options.hosts.at(2)), "[::1]:7003/my db");
  EXPECT_EQ(options.strategy, Strategy::named);
  EXPECT_EQ(options.schema, "my_locks-1$");
  EXPECT_TRUE(options.verbatim_keys);
  EXPECT_EQ(options.pooler, Pooler::session);
  EXPECT_TRUE(options.single_writer);
  EXPECT_EQ(options.max_connections, 3U);
  EXPECT_EQ(options.tls, Tls::verify) << "because of tls_ca";
  EXPECT_EQ(options.tls_files.ca_file, "/ca");
  EXPECT_EQ(options.tls_files.cert_file, "/cert");
  EXPECT_EQ(options.tls_files.key_file, "/key");
  const Options behind = parse("mysql://h?user=me&password_file=/p&strategy=optimistic&pooler=transaction&tls=verify");
  EXPECT_EQ(behind.user, "me");
  EXPECT_EQ(behind.password_file->path, "/p");
  EXPECT_EQ(behind.strategy, Strategy::optimistic);
  EXPECT_EQ(behind.pooler, Pooler::transaction);
  EXPECT_EQ(behind.tls, Tls::verify);
  EXPECT_EQ(parse("mysql://h?tls=unverified&strategy=for-update").tls, Tls::unverified);
}

TEST(MysqlOptions, BadPart_IsNamedWithoutThePassword) {
  std::string hosts = "h";
  for (int i = 0; i < 16; ++i) hosts += ",h";
  const std::string x65(65, 'x');
  test::expect_refused(&parse, {
                                   {"mysql://h:0", "port"},
                                   {"mysql://me:hidden@h?password_file=/p", "password_file"},
                                   {"mysql://h/a%ff", "database"},
                                   {"mysql://h/" + std::string(257, 'x'), "database"},
                                   {"mysql://" + std::string(129, 'x') + "@h", "user"},
                                   {"mysql://h?strategy=advisory", "strategy"},
                                   {"mysql://h?schema=", "schema"},
                                   {"mysql://h?schema=" + x65, "schema"},
                                   {"mysql://h?schema=Locks", "schema"},
                                   {"mysql://h?schema=a.b", "schema"},
                                   {"mysql://h?schema=a%60b", "schema"},
                                   {"mysql://h?schema=mysql", "schema"},
                                   {"mysql://h?schema=sys", "schema"},
                                   {"mysql://h?schema=information_schema", "schema"},
                                   {"mysql://h?schema=performance_schema", "schema"},
                                   {"mysql://h?key=verbatim", "strategy=named"},
                                   {"mysql://h?strategy=named&key=sha1", "key"},
                                   {"mysql://h?pooler=statement", "pooler"},
                                   {"mysql://h?strategy=named&pooler=transaction", "strategy=named"},
                                   {"mysql://h?single_writer=yes", "single_writer"},
                                   {"mysql://h?tls=maybe", "tls"},
                                   {"mysql://h?tls_ca=", "tls_ca"},
                                   {"mysql://h?tls=off&tls_ca=/ca", "tls_ca"},
                                   {"mysql://h?tls=unverified&tls_ca=/ca", "tls_ca: with tls=unverified"},
                                   {"mysql://h?tls_cert=/cert&tls_key=/key", "tls_cert"},
                                   {"mysql://h?tls=verify&tls_cert=/cert", "tls_cert and tls_key"},
                                   {"mysql://h?colour=red", "colour"},
                                   {"mysql://" + hosts, "host"},
                                   {"mysql://me:hidden@a%2Fb", "host"},
                                   {"mysql://me:hidden@h?x=y", "x"},
                               });
}

}  // namespace

}  // namespace dlock::mysql
