// URLs of Redis, its sentinels and its clusters: their options, and which are refused.
#include "backends/redis/options.hpp"

#include <vector>

#include "tests/support/refusals.hpp"

namespace dlock::redis {
namespace {

Options options_of(const std::string& url) {
  return parse_options({.url = Url::parse(url),
                        .holder = "host:17:my program",
                        .lease = {},
                        .response_timeout = {},
                        .connect_timeout = {}});
}

// Everything but the defaults.
std::string described(const Options& options) {
  std::string out = options.endpoint();
  const auto add = [&out](const std::string& what, const std::string& value) { out += ' ' + what + '=' + value; };
  const auto add_login = [&](const std::string& whose, const auto& login) {
    if (login.user) add(whose + "user", *login.user);
    if (login.password) add(whose + "password", *login.password);
    if (login.password_file) add(login.password_file->parameter, login.password_file->path);
    if (login.tls) add(whose + "tls", login.tls->ca_file + ',' + login.tls->cert_file + ',' + login.tls->key_file);
  };
  add_login("", options);
  if (options.db != 0) add("db", std::to_string(options.db));
  if (options.prefix != "dlock:") add("prefix", options.prefix);
  if (options.strategy != Strategy::queue) add("strategy", std::string(to_string(options.strategy)));
  if (options.replicas_ack != 0) add("acks", std::to_string(options.replicas_ack));
  if (options.any_role) add("any", "role");
  if (options.cluster) add("nodes", common::to_string(options.cluster->hosts));
  if (!options.sentinel) return out;
  add("sentinels", common::to_string(options.sentinel->hosts));
  add_login("sentinel_", *options.sentinel);
  if (options.sentinel->all_replicas) add("all", "replicas");
  return out;
}

TEST(RedisOptions, Url_SetsThem) {
  const std::string sentinel = "redis-sentinel://a?service_name=ours";
  const std::string at_sentinel = "ours sentinels=a:26379";
  for (const auto& [url, options] : std::vector<std::pair<std::string, std::string>>{
           {"redis://", "localhost:6379"},
           {"redis://me:s%40cret@[::1]:7000/3?strategy=poll&prefix=a:&replicas_ack=2",
            "[::1]:7000 user=me password=s@cret db=3 prefix=a: strategy=poll acks=2"},
           {"redis://:secret@host", "host:6379 password=secret"},  // of the default user
           {"redis://me@host?password_file=/p&strategy=broadcast",
            "host:6379 user=me password_file=/p strategy=broadcast"},
           {"redis://host?prefix=", "host:6379 prefix="},
           {"redis://host?prefix=a}", "host:6379 prefix=a}"},  // as any other but on a cluster
           {"redis://host?allow_replica=1", "host:6379 any=role"},
           {"rediss://host?tls_ca=/ca.pem&tls_cert=/c.pem&tls_key=/k.pem", "host:6379 tls=/ca.pem,/c.pem,/k.pem"},
           {"redis-sentinel://me:pw@a,b:7,[::1]/2?service_name=ours&sentinel_user=you&sentinel_password=x"
            "&replicas_ack=all",
            "ours user=me password=pw db=2 acks=1 sentinels=a:26379,b:7,[::1]:26379 sentinel_user=you "
            "sentinel_password=x all=replicas"},
           {"redis-sentinel://me@a?service_name=ours&password_file=/p&sentinel_user=you&sentinel_password_file=/s",
            "ours user=me password_file=/p sentinels=a:26379 sentinel_user=you sentinel_password_file=/s"},
           {sentinel + "&replicas_ack=all&replicas_min=3", "ours acks=3 sentinels=a:26379 all=replicas"},
           {sentinel + "&replicas_ack=2", "ours acks=2 sentinels=a:26379"},
           // The sentinels have TLS of their own.
           {"rediss-sentinel://a?service_name=ours&tls_ca=/ca.pem",
            "ours tls=/ca.pem,, sentinels=a:26379 sentinel_tls=/ca.pem,,"},
           {"rediss-sentinel://a?service_name=ours&sentinel_tls=off", "ours tls=,, sentinels=a:26379"},
           {sentinel + "&sentinel_tls=on&tls_ca=/ca.pem", at_sentinel + " sentinel_tls=/ca.pem,,"},
           {"redis-cluster://me:pw@a,b:7000,[::1]?replicas_ack=1&prefix={app}:",
            "a:6379 user=me password=pw prefix={app}: acks=1 nodes=a:6379,b:7000,[::1]:6379"},
           {"redis-cluster://", "localhost:6379 nodes=localhost:6379"},
           {"redis-cluster://a?prefix={a}}", "a:6379 prefix={a}} nodes=a:6379"},
       }) {
    EXPECT_EQ(described(options_of(url)), options) << url;
  }
  EXPECT_EQ(options_of("redis://host").client_name, "dlock:my_program") << "the label without spaces";
}

TEST(RedisOptions, InvalidUrl_IsRefusedWithTheParameter) {
  std::string many = "redis-cluster://n";
  for (int i = 1; i < 100; ++i) many += ",n" + std::to_string(i);
  EXPECT_EQ(options_of(many).cluster->hosts.size(), 100U);
  test::expect_refused(&options_of,
                       {
                           {many + ",one-more", "host"},
                           {"redis://me@host", "user"},
                           {"redis://host/-1", "path"},
                           {"redis://host/99999999999", "path"},
                           {"redis://host?replicas_ack=-1", "replicas_ack"},
                           {"redis://host?replicas_ack=1000", "replicas_ack"},
                           {"redis://host?tls_ca=/ca.pem", "tls_ca"},
                           {"redis://:hidden@host?password_file=/p", "password_file"},
                           {"redis-sentinel://a?service_name=x&sentinel_password=hidden&sentinel_password_file=/p",
                            "sentinel_password_file"},
                           {"redis://host?prefix=" + std::string(200, 'x'), "prefix"},
                           {"redis://me:hidden@a,b", "host"},
                           {"redis://host?service_name=ours", "service_name"},
                           {"redis://host?replicas_ack=all", "replicas_ack"},
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
                           {"redis-sentinel://a,b,c,d,e,f,g,h,i,j,k,l,m,n,o,p,q?service_name=x", "host"},
                           {"redis-sentinel://:hidden@a?service_name=x&sentinel_password=hid&y=z", "y"},
                           {"redis-cluster://a?prefix=a}", "prefix"},
                           {"redis-cluster://a?service_name=ours", "service_name"},
                           {"redis-cluster://me:hidden@a/1", "path"},
                           {"redis://me:hidden@host/x", "path"},
                           {"redis://me:hidden@host?x=y", "x"},
                       });
}

}  // namespace
}  // namespace dlock::redis
