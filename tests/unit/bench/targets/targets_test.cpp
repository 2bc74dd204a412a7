// Which targets there are, what they are called, and answers of servers.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include <dlock/dlock.hpp>

#include "bench/targets/catalog.hpp"
#include "bench/targets/service_target.hpp"

namespace dlock::bench {
namespace {

constexpr std::chrono::seconds limit{5};

TEST(CatalogTest, Url_HasATargetForEachOfItsStrategies) {
  std::vector<std::string> labels;
  for (const char* url : {"memory://", "memory://?strategy=watch"}) {
    for (const auto& each : make_targets(url, limit)) labels.push_back(each->label());
  }
  EXPECT_THAT(labels, testing::ElementsAre("memory queue", "memory watch", "memory poll", "memory watch"));
}

TEST(CatalogTest, UnknownUrl_IsRefusedWithoutItsPassword) {
  for (const auto& [url, said] : {std::pair{"memory://u:hunter2@a?strategy=none", "strategy"},
                                  {"nats://u:hunter2@host", "nats"},
                                  {"file:///tmp?strategy=x", "strategy"},
                                  {"file:///tmp?passwd=hunter2", "passwd"}}) {
    const auto rule = testing::AllOf(testing::HasSubstr(said), testing::Not(testing::HasSubstr("hunter2")));
    EXPECT_THAT([&url = url] { (void)make_targets(url, limit); }, testing::ThrowsMessage<Error>(rule));
  }
}

TEST(TargetsTest, Target_HasAPlaceOfItsOwnAndShowsNoPassword) {
  struct Row {
    std::unique_ptr<ServiceTarget> (*make)(const rig::UrlText& url, const std::string& strategy);
    const char* strategy;
    const char* given;
    const char* place;  // the target's own: a parameter, and the start of its value
    const char* shown;
  };
  for (const Row& row : std::vector<Row> {
#if DLOCK_BENCH_WITH_REDIS
         {&make_redis_target, "poll", "redis://u:hunter2@db1/3?lease=10s", "prefix=dlock-bench-",
          "redis://u:***@db1/3?lease=10s&strategy=poll"},
             {&make_redis_target, "queue", "rediss-sentinel://db1?prefix=app:", "prefix=app:dlock-bench-",
              "rediss-sentinel://db1?prefix=app:&strategy=queue"},
#endif
#if DLOCK_BENCH_WITH_ZOOKEEPER
             {&make_zookeeper_target, "ephemeral", "zookeeper://a,b:2182/root?auth=digest:u:hunter2",
              "prefix=/dlock-bench-", "zookeeper://a,b:2182/root?auth=***&strategy=ephemeral"},
             {&make_zookeeper_target, "sequential", "zookeeper://a?prefix=/app", "prefix=/app/dlock-bench-",
              "zookeeper://a?prefix=/app&strategy=sequential"},
#endif
#if DLOCK_BENCH_WITH_ETCD
             {&make_etcd_target, "", "etcd://u:hunter2@a,b:2380?session_ttl=4s", "prefix=dlock-bench-",
              "etcd://u:***@a,b:2380?session_ttl=4s"},
             {&make_etcd_target, "", "etcds://a?prefix=app/", "prefix=app/dlock-bench-", "etcds://a?prefix=app/"},
#endif
#if DLOCK_BENCH_WITH_POSTGRES
             {&make_postgres_target, "table", "postgresql://u:hunter2@h/db?sslmode=require", "schema=dlock_bench_",
              "postgresql://u:***@h/db?sslmode=require&strategy=table"},
             {&make_postgres_target, "table", "postgresql://h/db?schema=app", "schema=app",
              "postgresql://h/db?schema=app&strategy=table"},
#endif
#if DLOCK_BENCH_WITH_MYSQL
             {&make_mysql_target, "named", "mysql://u:hunter2@a,b:3307/db?tls=verify", "schema=dlock_bench_",
              "mysql://u:***@a,b:3307/db?tls=verify&strategy=named"},
             {&make_mysql_target, "table", "mariadb://h/db?schema=app", "schema=app",
              "mariadb://h/db?schema=app&strategy=table"},
#endif
       }) {
    SCOPED_TRACE(row.given);
    const auto target = row.make(rig::UrlText(row.given), row.strategy);
    const std::string url = target->url(1);
    const std::string place = row.place;
    const std::string name = place.substr(0, place.find('='));
    EXPECT_THAT(name + "=" + rig::UrlText(url).parameter(name).value_or(""), testing::StartsWith(place));
    EXPECT_EQ(target->info().url, row.shown);
    const auto other = row.make(rig::UrlText(row.given), row.strategy);
    EXPECT_EQ(other->url(1) == url, place == "schema=app") << "targets share only the user's schema";
  }
}

TEST(AnswersTest, Values_AreFoundByTheirWholeNames) {
  EXPECT_EQ(value_in("# Server\r\nmy_version:1\r\nversion:7.0.15\r\nversion_next:8", "version", ':'), "7.0.15");
  EXPECT_EQ(number_in("calls=40,usec=400", "calls", '='), 40);
  EXPECT_EQ(number_in("state\tleader\n", "state", '\t'), std::nullopt);
  const std::string_view text = "# HELP a says\na{b=\"c d\"} 1\r\na{b=\"e\"} 2.5\na_long 10\nab 20\na 1e+02\nd\ne x\n";
  EXPECT_EQ(metric_sum(text, "a"), 103.5);
  for (const char* name : {"a_", "d", "e"}) EXPECT_EQ(metric_sum(text, name), std::nullopt);
}

}  // namespace
}  // namespace dlock::bench
