#include "bench/targets/catalog.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

#include <dlock/dlock.hpp>

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

TEST(BenchCatalog, HasATargetForEachStrategyOrForTheOneOfTheUrl) {
  EXPECT_THAT(labels_of("memory://"), testing::ElementsAre("memory queue", "memory watch", "memory poll"));
  EXPECT_THAT(labels_of("memory://?strategy=watch"), testing::ElementsAre("memory watch"));
}

TEST(BenchCatalog, RefusesWhatDoesNotExistWithoutShowingThePassword) {
  for (const auto& [url, said] : {std::pair{"memory://u:hunter2@a?strategy=none", "strategy"},
                                  {"nats://u:hunter2@host", "nats"},
                                  {"file:///tmp?strategy=x", "strategy"},
                                  {"file:///tmp?passwd=hunter2", "passwd"}}) {
    const std::string text = refusal_of(url);
    EXPECT_THAT(text, testing::HasSubstr(said));
    EXPECT_THAT(text, testing::Not(testing::HasSubstr("hunter2")));
  }
}

TEST(BenchCatalog, TheMemoryTargetsLocksAreTheirOwn) {
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

TEST_F(UsualUrlsTest, BeginWithTheUsersOwnAndHaveNoneTwice) {
  ::setenv("DLOCK_URL", "memory://", 1);
  const auto urls = usual_urls();
  EXPECT_EQ(urls.front(), "memory://");
  EXPECT_EQ(std::count(urls.begin(), urls.end(), "memory://"), 1);
}

TEST_F(UsualUrlsTest, AreOneForEachBackendThatIsBuilt) {
  ::unsetenv("DLOCK_URL");
  EXPECT_THAT(usual_urls(), testing::Contains(testing::StartsWith("file:///")));
  std::vector<std::string> schemes;
  for (const std::string& url : usual_urls()) schemes.push_back(url.substr(0, url.find(':')));
  for (const std::string backend : {"memory", "file", "redis", "zookeeper", "etcd", "postgresql"}) {
    const auto built = backends();
    EXPECT_EQ(std::count(schemes.begin(), schemes.end(), backend), std::count(built.begin(), built.end(), backend));
  }
}

}  // namespace
}  // namespace dlock::bench
