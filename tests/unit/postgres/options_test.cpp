#include "backends/postgres/options.hpp"

#include <gtest/gtest.h>

#include <string>
#include <utility>

#include "tests/support/refusals.hpp"

namespace dlock::postgres {

namespace {

using namespace std::chrono_literals;
using Parameters = std::vector<std::pair<std::string, std::string>>;

Options parse(const std::string& url, const std::string& holder = "host:17:my program") {
  return parse_options(
      {.url = Url::parse(url), .holder = holder, .lease = 30s, .response_timeout = 2s, .connect_timeout = 5s});
}

TEST(PostgresOptions, Defaults_AreSet) {
  const Options options = parse("postgresql://");
  EXPECT_EQ(options.endpoint(), "localhost:5432");
  EXPECT_FALSE(options.user || options.password || options.database);
  EXPECT_EQ(options.strategy, Strategy::table);
  EXPECT_EQ(options.schema, "dlock");
  EXPECT_EQ(options.durability, Durability::sync);
  EXPECT_EQ(options.key, KeyScheme());
  EXPECT_EQ(options.pooler, Pooler::detect);
  EXPECT_EQ(options.max_connections, 10U);
  EXPECT_TRUE(options.libpq.empty());
  EXPECT_EQ(options.target_session_attrs, "read-write");
  EXPECT_EQ(options.application_name, "dlock:host:17:my program");
  EXPECT_EQ(options.holder, "host:17:my program");
  EXPECT_EQ(options.lease, 30s);
  EXPECT_EQ(options.response_timeout, 2s);
  EXPECT_EQ(options.connect_timeout, 5s);
}

TEST(PostgresOptions, Url_SetsEachOption) {
  const Options options = parse(
      "postgres://me:s%40cret@h1:7001,h2,[::1]:7003/my%20db?strategy=advisory&schema=my%20locks&durability=async"
      "&key=pair:1,-2&pooler=session&max_connections=3&target_session_attrs=primary&application_name=billing");
  EXPECT_EQ(options.user, "me");
  EXPECT_EQ(options.password, "s@cret");
  EXPECT_EQ(options.database, "my db");
  EXPECT_EQ(options.endpoint(), "h1:7001,h2:5432,[::1]:7003/my db");
  EXPECT_EQ(options.endpoint_of(options.hosts.at(2)), "[::1]:7003/my db");
  EXPECT_EQ(options.schema, "my locks");
  EXPECT_EQ(options.durability, Durability::async);
  EXPECT_EQ(options.key, (KeyScheme{.kind = KeyScheme::Kind::pair, .first = 1, .second = -2}));
  EXPECT_EQ(options.pooler, Pooler::session);
  EXPECT_EQ(options.max_connections, 3U);
  EXPECT_EQ(options.target_session_attrs, "primary");
  EXPECT_EQ(options.application_name, "billing");
  const Options behind = parse("postgresql://h?user=me&password=hidden&dbname=db");
  EXPECT_EQ(behind.user, "me");
  EXPECT_EQ(behind.password, "hidden");
  EXPECT_EQ(behind.database, "db");
  for (const Strategy each : {Strategy::table, Strategy::optimistic, Strategy::for_update, Strategy::advisory}) {
    EXPECT_EQ(parse("postgresql://h?strategy=" + std::string(to_string(each))).strategy, each);
  }
  EXPECT_EQ(parse("postgresql://h?durability=sync").durability, Durability::sync);
  EXPECT_EQ(parse("postgresql://h?durability=unlogged").durability, Durability::unlogged);
}

TEST(PostgresOptions, SocketDirectory_IsAccepted) {
  for (const char* const url : {"postgresql://%2Frun%2Fpg:7001/db", "postgresql:///db?host=/run/pg&port=7001"}) {
    const Options options = parse(url);
    EXPECT_TRUE(options.hosts.at(0).is_socket_directory());
    EXPECT_EQ(options.endpoint(), "/run/pg:7001/db");
  }
  EXPECT_EQ(parse("postgresql://me@?host=/run/pg").database, std::nullopt);
}

TEST(PostgresOptions, LibraryOptions_AreForwarded) {
  const Options options = parse(
      "postgresql://h?sslmode=verify-full&sslrootcert=/ca.pem&sslcert=/c.pem&sslkey=/k.pem&sslpassword=x&sslcrl=/l"
      "&ssl_min_protocol_version=TLSv1.2&channel_binding=require&gssencmode=disable&passfile=/p&keepalives=1"
      "&keepalives_idle=5&keepalives_interval=2&keepalives_count=3&tcp_user_timeout=9000");
  std::string forwarded;
  for (const auto& [name, value] : options.libpq) forwarded += name + "=" + value + " ";
  EXPECT_EQ(
      forwarded,
      "sslmode=verify-full ssl_min_protocol_version=TLSv1.2 channel_binding=require gssencmode=disable keepalives=1 "
      "sslrootcert=/ca.pem sslcert=/c.pem sslkey=/k.pem sslpassword=x sslcrl=/l passfile=/p keepalives_idle=5 "
      "keepalives_interval=2 keepalives_count=3 tcp_user_timeout=9000 ");
}

TEST(PostgresOptions, NamedAuthority_VerifiesTheServer) {
  EXPECT_EQ(parse("postgresql://h?sslrootcert=/ca.pem").libpq,
            (Parameters{{"sslrootcert", "/ca.pem"}, {"sslmode", "verify-full"}}));
  for (const char* mode : {"require", "verify-ca", "verify-full"}) {
    EXPECT_EQ(parse(std::string("postgresql://h?sslrootcert=/ca.pem&sslmode=") + mode).libpq,
              (Parameters{{"sslmode", mode}, {"sslrootcert", "/ca.pem"}}));
  }
  EXPECT_EQ(parse("postgresql://h?sslcert=/c.pem").libpq, (Parameters{{"sslcert", "/c.pem"}}));
}

TEST(PostgresOptions, ApplicationName_FitsTheServer) {
  EXPECT_EQ(parse("postgresql://h", "host:1:caf\u00e9").application_name, "dlock:host:1:caf??");
  EXPECT_EQ(parse("postgresql://h", std::string(100, 'x')).application_name, "dlock:" + std::string(57, 'x'));
  EXPECT_EQ(as_application_name("a\nb"), "a?b");
}

TEST(PostgresOptions, InvalidOption_IsNamed) {
  const std::string x64(64, 'x');
  std::string hosts = "h";
  for (int i = 0; i < 16; ++i) hosts += ",h";
  test::expect_refused([](const std::string& url) { return parse(url); },
                       {
                           {"postgresql://a%2Cb", "host"},
                           {"postgresql://a%20b", "host"},
                           {"postgresql://h?host=/run", "host"},
                           {"postgresql://?host=", "host"},
                           {"postgresql://?host=a%2Cb", "host"},
                           {"postgresql://?host=/run&port=0", "port"},
                           {"postgresql://?host=/run&port=x", "port"},
                           {"postgresql://h?port=5432", "port"},
                           {"postgresql://me@h?user=you", "user"},
                           {"postgresql://h?user=", "user"},
                           {"postgresql://me%0a@h", "user"},
                           {"postgresql://h/db?dbname=other", "dbname"},
                           {"postgresql://h/a%0ab", "database"},
                           {"postgresql://h/%ff", "database"},
                           {"postgresql://h?strategy=magic", "strategy"},
                           {"postgresql://h?strategy=for_update", "strategy"},
                           {"postgresql://h?durability=maybe", "durability"},
                           {"postgresql://h?schema=", "schema"},
                           {"postgresql://h?schema=a.b", "schema"},
                           {"postgresql://h?schema=pg_locks", "schema"},
                           {"postgresql://h?schema=information_schema", "schema"},
                           {"postgresql://h?schema=a%0ab", "schema"},
                           {"postgresql://h?schema=%c3", "schema"},
                           {"postgresql://h?key=sha256", "key"},
                           {"postgresql://h?strategy=advisory&key=md5", "key"},
                           {"postgresql://h?strategy=advisory&key=int64:", "key"},
                           {"postgresql://h?pooler=statement", "pooler"},
                           {"postgresql://h?strategy=advisory&pooler=transaction", "strategy=advisory"},
                           {"postgresql://h?strategy=for-update&pooler=transaction", "strategy=for-update"},
                           {"postgresql://h?max_connections=0", "max_connections"},
                           {"postgresql://h?max_connections=1001", "max_connections"},
                           {"postgresql://h?max_connections=many", "max_connections"},
                           {"postgresql://h?target_session_attrs=standby", "target_session_attrs"},
                           {"postgresql://h?sslmode=sometimes", "sslmode"},
                           {"postgresql://h?sslmode=", "sslmode"},
                           {"postgresql://h?sslrootcert=", "sslrootcert"},
                           {"postgresql://h?keepalives_idle=-1", "keepalives_idle"},
                           {"postgresql://h?tcp_user_timeout=1s", "tcp_user_timeout"},
                           {"postgresql://h?hostaddr=::1", "hostaddr"},
                           {"postgresql://h?options=-cx%3Dy", "options"},
                           {"postgresql://h?service=x", "service"},
                           {"postgresql://h?client_encoding=LATIN1", "client_encoding"},
                           {"postgresql://h?replication=database", "replication"},
                           {"postgresql://h?colour=red", "colour"},
                           {"postgresql://h?sslrootcert=/ca.pem&sslmode=disable", "sslrootcert: with sslmode="},
                           {"postgresql://h?sslrootcert=/ca.pem&sslmode=allow", "sslrootcert: with sslmode="},
                           {"postgresql://h?sslrootcert=/ca.pem&sslmode=prefer", "sslrootcert: with sslmode="},
                           {"postgresql://h?schema=" + x64, "schema"},
                           {"postgresql://h/" + x64, "database"},
                           {"postgresql://%2F" + x64 + x64, "host"},
                           {"postgresql://" + hosts, "host"},
                           {"postgresql://me:hidden@a%2Cb", "host"},
                           {"postgresql://me:hidden@h?strategy=x", "strategy"},
                           {"postgresql://me:hidden@h?x=y", "x"},
                           {"postgresql://me:hidden@h?password=hidden", "password"},
                           {"postgresql://h?password=hidden&x=y", "x"},
                           {"postgresql://h?sslpassword=hidden&x=y", "x"},
                           {"postgresql://h?sslpassword=hid%0Aden", "sslpassword"},
                           {"postgresql://me:hidden@h/%ff", "database"},
                       });
  EXPECT_EQ(parse("postgresql://me:hidden@h/db").endpoint(), "h:5432/db");
}

}  // namespace

}  // namespace dlock::postgres
