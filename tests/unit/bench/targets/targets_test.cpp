// Which targets there are, what they are called, and answers of servers.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <string>
#include <vector>

#include <dlock/dlock.hpp>

#include "bench/targets/catalog.hpp"
#include "bench/targets/service_target.hpp"
#include "torture/rig/detour.hpp"

namespace dlock::bench {
namespace {

constexpr std::chrono::seconds limit{5};

std::vector<std::string> labels_of(const std::string& url) {
  std::vector<std::string> labels;
  for (const auto& each : make_targets(url, limit)) labels.push_back(each->label());
  return labels;
}

std::string refusal_of(const std::string& url) {
  try {
    (void)make_targets(url, limit);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), errc::invalid_argument);
    return error.what();
  }
  return {};
}

TEST(CatalogTest, Url_HasATargetForEachOfItsStrategies) {
  EXPECT_THAT(labels_of("memory://"), testing::ElementsAre("memory queue", "memory watch", "memory poll"));
  EXPECT_THAT(labels_of("memory://?strategy=watch"), testing::ElementsAre("memory watch"));
}

TEST(CatalogTest, UnknownUrl_IsRefusedWithoutItsPassword) {
  for (const auto& [url, said] : {std::pair{"memory://u:hunter2@a?strategy=none", "strategy"},
                                  {"nats://u:hunter2@host", "nats"},
                                  {"file:///tmp?strategy=x", "strategy"},
                                  {"file:///tmp?passwd=hunter2", "passwd"}}) {
    const std::string text = refusal_of(url);
    EXPECT_THAT(text, testing::HasSubstr(said));
    EXPECT_THAT(text, testing::Not(testing::HasSubstr("hunter2")));
  }
}

TEST(CatalogTest, MemoryTargets_HaveLocksOfTheirOwn) {
  const auto targets = make_targets("memory://", limit);
  const auto is_free = [](const Client& client) { return client.make_lock("a").try_acquire().has_value(); };
  const Client client = targets[0]->connect(1);
  DistributedLock held = client.make_lock("a");
  const auto lease = held.try_acquire();
  ASSERT_TRUE(lease);
  EXPECT_FALSE(is_free(targets[0]->connect(1)));
  EXPECT_TRUE(is_free(targets[1]->connect(1)));
  EXPECT_TRUE(is_free(connect("memory://")));
}

class UsualUrlsTest : public testing::Test {
 protected:
  ~UsualUrlsTest() override { ::unsetenv("DLOCK_URL"); }
};

TEST_F(UsualUrlsTest, UsersUrl_IsTheFirstAndOnce) {
  ::setenv("DLOCK_URL", "memory://", 1);
  const auto urls = usual_urls();
  EXPECT_EQ(urls.front(), "memory://");
  EXPECT_EQ(std::count(urls.begin(), urls.end(), "memory://"), 1);
}

TEST_F(UsualUrlsTest, BuiltBackend_HasAUrl) {
  ::unsetenv("DLOCK_URL");
  EXPECT_THAT(usual_urls(), testing::Contains(testing::StartsWith("file:///")));
  std::vector<std::string> schemes;
  for (const std::string& url : usual_urls()) schemes.push_back(url.substr(0, url.find(':')));
  for (const std::string backend : {"memory", "file", "redis", "zookeeper", "etcd", "postgresql"}) {
    const auto built = backends();
    EXPECT_EQ(std::count(schemes.begin(), schemes.end(), backend), std::count(built.begin(), built.end(), backend));
  }
}

TEST(TargetsTest, OwnName_IsUniqueAndNamesItsProcess) {
  const std::string start = "dlock_bench_" + std::to_string(::getpid()) + "_";
  EXPECT_EQ(own_name('_').substr(0, start.size()), start);
  EXPECT_NE(own_name(), own_name());
}

struct UrlRow {
  std::unique_ptr<ServiceTarget> (*make)(const rig::UrlText& url, const std::string& strategy);
  const char* strategy;
  const char* given;
  const char* parameter;  // names the target's own place
  const char* start;      // of its name
  const char* kept;       // what else is in the target's URL
  const char* shown;
  const char* label;
};

const std::vector<UrlRow>& url_rows() {
  static const std::vector<UrlRow> all = {
#if DLOCK_BENCH_WITH_REDIS
    {&make_redis_target, "poll", "redis://u:hunter2@db1/3?lease=10s", "prefix", "dlock-bench-",
     "redis://u:hunter2@db1/3?lease=10s&strategy=poll&", "redis://u:***@db1/3?lease=10s&strategy=poll", "redis poll"},
    {&make_redis_target, "queue", "rediss-sentinel://db1?prefix=app:", "prefix", "app:dlock-bench-",
     "rediss-sentinel://db1?", "rediss-sentinel://db1?prefix=app:&strategy=queue", "redis-sentinel queue"},
#endif
#if DLOCK_BENCH_WITH_ZOOKEEPER
    {&make_zookeeper_target, "ephemeral", "zookeeper://a,b:2182/root?auth=digest:u:hunter2", "prefix", "/dlock-bench-",
     "zookeeper://a,b:2182/root?auth=digest:u:hunter2&strategy=ephemeral&",
     "zookeeper://a,b:2182/root?auth=***&strategy=ephemeral", "zookeeper ephemeral"},
    {&make_zookeeper_target, "sequential", "zookeeper://a?prefix=/app", "prefix", "/app/dlock-bench-", "zookeeper://a?",
     "zookeeper://a?prefix=/app&strategy=sequential", "zookeeper sequential"},
#endif
#if DLOCK_BENCH_WITH_ETCD
    {&make_etcd_target, "", "etcd://u:hunter2@a,b:2380?session_ttl=4s", "prefix", "dlock-bench-",
     "etcd://u:hunter2@a,b:2380?session_ttl=4s&", "etcd://u:***@a,b:2380?session_ttl=4s", "etcd"},
    {&make_etcd_target, "", "etcds://a?prefix=app/", "prefix", "app/dlock-bench-", "etcds://a?",
     "etcds://a?prefix=app/", "etcd"},
#endif
#if DLOCK_BENCH_WITH_POSTGRES
    {&make_postgres_target, "table", "postgresql://u:hunter2@h/db?sslmode=require", "schema", "dlock_bench_",
     "postgresql://u:hunter2@h/db?sslmode=require&strategy=table&",
     "postgresql://u:***@h/db?sslmode=require&strategy=table", "postgresql table"},
    {&make_postgres_target, "table", "postgresql://h/db?schema=app", "schema", "app", "postgresql://h/db?",
     "postgresql://h/db?schema=app&strategy=table", "postgresql table"},
#endif
  };
  return all;
}

TEST(TargetsTest, Target_HasAPlaceOfItsOwnAndShowsNoPassword) {
  for (const UrlRow& row : url_rows()) {
    SCOPED_TRACE(row.given);
    const auto target = row.make(rig::UrlText(row.given), row.strategy);
    const std::string url = target->url(1);
    EXPECT_EQ(rig::UrlText(url).parameter(row.parameter)->substr(0, std::string(row.start).size()), row.start);
    EXPECT_EQ(url.substr(0, std::string(row.kept).size()), row.kept);
    EXPECT_EQ(target->info().url, row.shown);
    EXPECT_EQ(target->label(), row.label);
    const auto other = row.make(rig::UrlText(row.given), row.strategy);
    EXPECT_EQ(other->url(1) == url, std::string(row.start) == "app") << "targets share only the user's schema";
  }
}

TEST(TargetsTest, Distance_IsOnlyWhereNoHostNameIsVerified) {
  const auto hosts = [](const std::string& url) { return rig::hosts_for_proxies(rig::UrlText(url)).size(); };
  EXPECT_EQ(hosts("redis://a"), 1U);
  EXPECT_EQ(hosts("rediss://a"), 0U);
  EXPECT_EQ(hosts("zookeeper://a,b:1,c"), 3U);
  EXPECT_EQ(hosts("etcd://a,b:1"), 2U);
  EXPECT_EQ(hosts("etcds://a"), 0U);
  EXPECT_EQ(hosts("postgresql://a,b/db"), 2U);
  EXPECT_EQ(hosts("postgres:///db?host=a&port=1"), 1U);
  EXPECT_EQ(hosts("postgresql:///db?host=/run/postgresql"), 0U);
  EXPECT_EQ(hosts("postgresql://%2Frun%2Fpostgresql/db"), 0U);
  EXPECT_EQ(hosts("postgresql://a?sslmode=verify-full"), 0U);
  EXPECT_EQ(hosts("postgresql://a?sslrootcert=ca.pem"), 0U) << "which means the same";
  EXPECT_EQ(hosts("postgresql://a?sslrootcert=ca.pem&sslmode=verify-ca"), 1U);
  EXPECT_EQ(hosts("file:///tmp"), 0U);
  EXPECT_EQ(make_memory_target(rig::UrlText("memory://"), "queue")->at_distance(std::chrono::milliseconds(1)), nullptr);
}

#if DLOCK_BENCH_WITH_REDIS
TEST(TargetsTest, RedisOverTls_HasNoFloorAndCountsNothing) {
  const auto target = make_redis_target(rig::UrlText("rediss://db1"), "queue");
  EXPECT_FALSE(target->has_floor());
  EXPECT_FALSE(target->operations());
  EXPECT_THROW(target->clean_up(), std::runtime_error) << "says that it cannot";
  target->prepare();
  EXPECT_EQ(target->info().crash, "not known");
}
#endif

#if DLOCK_BENCH_WITH_POSTGRES
TEST(TargetsTest, Postgres_HasConnectionsForLocksThatTakeOne) {
  const auto connections = [](const char* given, const char* strategy, std::size_t locks) {
    const auto target = make_postgres_target(rig::UrlText(given), strategy);
    EXPECT_FALSE(target->has_floor()) << "without tables for it";
    return rig::UrlText(target->url(locks)).parameter("max_connections").value_or("");
  };
  EXPECT_EQ(connections("postgresql://h/db", "for-update", 64), "70");
  EXPECT_EQ(connections("postgresql://h/db", "advisory", 5000), "1000");
  EXPECT_EQ(connections("postgresql://h/db", "table", 64), "");
  EXPECT_EQ(connections("postgresql://h/db?max_connections=20", "advisory", 64), "20");
}
#endif

// --- Answers of servers ----------------------------------------------------------------------------------------------

TEST(AnswersTest, Value_IsFoundByItsWholeName) {
  const std::string_view info = "# Server\r\nmy_version:1\r\nversion:7.0.15\r\nversion_next:8\r\nlast:2";
  EXPECT_EQ(value_in(info, "version", ':'), "7.0.15");
  EXPECT_EQ(value_in(info, "last", ':'), "2");
  EXPECT_EQ(value_in(info, "ver", ':'), std::nullopt);
  EXPECT_EQ(value_in("", "version", ':'), std::nullopt);
  EXPECT_EQ(value_in("zk_version\t3.8.0-x, built\nzk_version:no\n", "zk_version", '\t'), "3.8.0-x, built");
}

TEST(AnswersTest, Number_IsTheStartOfAValue) {
  EXPECT_EQ(number_in("maxClientCnxns=60\n", "maxClientCnxns", '='), 60);
  EXPECT_EQ(number_in("avg\t1.25\n", "avg", '\t'), 1.25);
  EXPECT_EQ(number_in("calls=40,usec=400", "calls", '='), 40);
  EXPECT_EQ(number_in("state\tleader\n", "state", '\t'), std::nullopt);
  EXPECT_EQ(number_in("mntr is not executed because it is not in the whitelist.\n", "mntr", ' '), std::nullopt);
}

TEST(AnswersTest, Metrics_AreSummedOverTheirLabels) {
  const std::string_view text = "# HELP a says\na{b=\"c d\"} 1\r\na{b=\"e\"} 2.5\na_long 10\nab 20\na 1e+02\nd\ne x\n";
  EXPECT_EQ(metric_sum(text, "a"), 103.5);
  EXPECT_EQ(metric_sum(text, "a_long"), 10);
  EXPECT_EQ(metric_sum(text, "a_"), std::nullopt);
  EXPECT_EQ(metric_sum(text, "d"), std::nullopt);
  EXPECT_EQ(metric_sum(text, "e"), std::nullopt);
  EXPECT_EQ(metric_sum("a 7", "a"), 7);
}

}  // namespace
}  // namespace dlock::bench
