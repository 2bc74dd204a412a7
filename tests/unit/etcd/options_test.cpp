#include "backends/etcd/options.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/refusals.hpp"

namespace dlock::etcd {
namespace {

using namespace std::chrono_literals;

Options parse(const std::string& url, std::chrono::nanoseconds lease = 30s) {
  return parse_options({.url = Url::parse(url),
                        .holder = "host:17:my program",
                        .lease = lease,
                        .response_timeout = 2s,
                        .connect_timeout = 5s});
}

std::string described(const Options& options) {
  std::string out = options.endpoint();
  if (!options.user.empty()) out += " user=" + options.user;
  if (!options.password.empty()) out += " password=" + options.password;
  if (options.password_file) out += " password_file=" + options.password_file->path;
  out += " prefix=" + options.prefix + (options.verbatim ? " verbatim" : "");
  if (options.tls) out += " tls=" + options.tls->ca_file + ',' + options.tls->cert_file + ',' + options.tls->key_file;
  return out;
}

TEST(EtcdOptions, Url_SetsThem) {
  for (const auto& [url, options] : std::vector<std::pair<std::string, std::string>>{
           {"etcd://", "localhost:2379 prefix=dlock/"},
           {"etcd://me:s%40cret@h1:7001,h2,[::1]:7003/?prefix=locks/x:&names=verbatim",
            "h1:7001,h2:2379,[::1]:7003 user=me password=s@cret prefix=locks/x: verbatim"},
           {"etcd://me@h?password_file=/p", "h:2379 user=me password_file=/p prefix=dlock/"},
           {"etcd://h?names=escaped", "h:2379 prefix=dlock/"},
           {"etcd://h?prefix=", "h:2379 prefix="},  // the root
           {"etcds://h", "h:2379 prefix=dlock/ tls=,,"},
           {"etcds://h?tls_ca=/ca.pem&tls_cert=/c.pem&tls_key=/k.pem",
            "h:2379 prefix=dlock/ tls=/ca.pem,/c.pem,/k.pem"},
       }) {
    EXPECT_EQ(described(parse(url)), options);
  }
  const Options options = parse("etcds://h");
  EXPECT_EQ(options.tls->protocol, "h2") << "servers refuse clients that do not offer it";
  EXPECT_EQ(options.holder, "host:17:my program");
  EXPECT_EQ(options.response_timeout, 2s);
  EXPECT_EQ(options.connect_timeout, 5s);
}

TEST(EtcdOptions, SessionTtl_IsGivenOrTheLeaseInWholeSeconds) {
  for (const auto& [lease, ttl] : std::vector<std::pair<std::chrono::nanoseconds, std::chrono::seconds>>{
           {10s, 10s},
           {10001ms, 11s},
           {2s, 2s},
           {1ms, 2s},
           {300s, 300s},
           {24h, 300s},
           {std::chrono::nanoseconds::max(), 300s},
       }) {
    EXPECT_EQ(parse("etcd://h", lease).session_ttl, ttl) << lease.count();
    EXPECT_EQ(parse("etcd://h?session_ttl=7s", lease).session_ttl, 7s);
  }
  EXPECT_EQ(parse("etcd://h?session_ttl=2s").session_ttl, 2s);
  EXPECT_EQ(parse("etcd://h?session_ttl=2001ms").session_ttl, 3s) << "never less than was asked for";
  EXPECT_EQ(parse("etcd://h?session_ttl=5m").session_ttl, 300s);
}

TEST(EtcdOptions, InvalidUrl_IsRefusedWithTheReason) {
  std::string many = "etcd://h";
  for (int i = 1; i < 64; ++i) many += ",h";
  EXPECT_EQ(parse(many).hosts.size(), 64U);
  const std::string longest(256, 'x');
  EXPECT_EQ(parse("etcd://h?prefix=" + longest).prefix, longest);
  dlock::test::expect_refused(
      [](const std::string& url) { return parse(url); },
      {
          {many + ",h", "host: more than 64 in the list"},
          {"etcd://a%2Fb", "host: \"a/b\" is not a host name"},
          {"etcd://h/0", "path: \"/0\": etcd has no numbered databases; use prefix to keep locks apart"},
          {"etcd://me@h", "user: given without a password"},
          {"etcd://:hidden@h", "password: given without a user"},
          {"etcd://h?prefix=" + longest + "x", "prefix: longer than 256 bytes"},
          {"etcd://h?prefix=a%0ab", "prefix: lock name \"a\\x0ab\" has a control character at byte 1"},
          {"etcd://h?prefix=a%ff", "prefix: lock name \"a\\xff\" is not valid UTF-8 at byte 1"},
          {"etcd://h?names=raw", "URL: parameter \"names\" must be escaped or verbatim, not \"raw\""},
          {"etcd://h?session_ttl=1999ms", "session_ttl: 1999ms is outside 2s..5m"},
          {"etcd://h?session_ttl=300001ms", "session_ttl: 300001ms is outside 2s..5m"},
          {"etcd://h?session_ttl=forever", "session_ttl: forever is outside 2s..5m"},
          {"etcd://h?tls_ca=/ca.pem", "parameter \"tls_ca\" needs etcds://"},
          {"etcd://h?tls_cert=/c.pem", "parameter \"tls_cert\" needs etcds://"},
          {"etcd://h?tls_key=/k.pem", "parameter \"tls_key\" needs etcds://"},
          {"etcd://me:hidden@h?password_file=/p", "password_file: the URL has the password itself, too"},
          {"etcd://h?password_file=/p", "password_file: given without a user"},
          {"etcd://me@h?password_file=", "parameter \"password_file\" is empty, but must name a file"},
          {"etcds://h?tls_ca=", "parameter \"tls_ca\" is empty, but must name a file"},
          {"etcds://h?tls_cert=/c.pem", "tls_cert and tls_key must be given together"},
          {"etcds://h?tls_key=/k.pem", "tls_cert and tls_key must be given together"},
          {"etcd://h?strategy=queue",
           "URL: unknown parameter \"strategy\" for scheme \"etcd\"; it takes names, password_file, prefix, "
           "session_ttl, tls_ca, tls_cert, tls_key"},
      });
}

}  // namespace
}  // namespace dlock::etcd
