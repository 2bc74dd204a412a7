#include "bench/targets/catalog.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <string>

#include <dlock/dlock.hpp>

#include "torture/rig/scratch_directory.hpp"

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

TEST(BenchCatalog, HasATargetForEachStrategy) {
  EXPECT_THAT(labels_of("memory://"), testing::ElementsAre("memory queue", "memory watch", "memory poll"));
}

TEST(BenchCatalog, HasOnlyTheStrategyThatTheUrlNames) {
  EXPECT_THAT(labels_of("memory://?strategy=watch"), testing::ElementsAre("memory watch"));
}

TEST(BenchCatalog, AStrategyThatDoesNotExistIsRefused) {
  EXPECT_THAT(refusal_of("memory://?strategy=none"), testing::HasSubstr("strategy"));
}

TEST(BenchCatalog, AnUnknownSchemeIsRefused) {
  EXPECT_THAT(refusal_of("nats://host"), testing::HasSubstr("nats"));
}

TEST(BenchCatalog, ARefusalDoesNotShowThePassword) {
  const std::string text = refusal_of("redis://u:hunter2@host?unknown=1");
  EXPECT_NE(text, "");
  EXPECT_THAT(text, testing::Not(testing::HasSubstr("hunter2")));
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

class BenchFileTarget : public testing::Test {
 protected:
  rig::ScratchDirectory directory_;
  std::unique_ptr<Target> target_ = std::move(make_targets("file://" + directory_.path(), limit).front());
};

TEST_F(BenchFileTarget, KeepsItsLocksInADirectoryOfItsOwn) {
  const Client client = target_->connect(1);
  DistributedLock lock = client.make_lock("a");
  ASSERT_TRUE(lock.try_acquire());
  for (const auto& each : std::filesystem::directory_iterator(directory_.path())) EXPECT_TRUE(each.is_directory());
}

TEST_F(BenchFileTarget, LeavesNothingBehind) {
  auto floor = target_->make_floor("dlock-bench/a");
  floor->acquire();
  floor->release();
  target_->clean_up();
  EXPECT_TRUE(std::filesystem::is_empty(directory_.path()));
}

TEST_F(BenchFileTarget, ItsFloorExcludes) {
  const auto one = target_->make_floor("dlock-bench/a");
  const auto other = target_->make_floor("dlock-bench/a");
  one->acquire();
  EXPECT_THROW(other->acquire(), std::runtime_error);
  EXPECT_THROW(other->release(), std::runtime_error);
  one->release();
  other->acquire();
  other->release();
}

TEST_F(BenchFileTarget, SaysWhatFileSystemItIs) {
  ASSERT_EQ(target_->info().settings.size(), 1U);
  EXPECT_EQ(target_->info().settings[0].first, "file system");
}

class UsualUrlsTest : public testing::Test {
 protected:
  ~UsualUrlsTest() override { ::unsetenv("DLOCK_URL"); }
};

TEST_F(UsualUrlsTest, BeginWithTheUsersOwn) {
  ::setenv("DLOCK_URL", "redis://db1", 1);
  EXPECT_EQ(usual_urls().front(), "redis://db1");
}

TEST_F(UsualUrlsTest, HaveNoneTwice) {
  ::setenv("DLOCK_URL", "memory://", 1);
  const auto urls = usual_urls();
  EXPECT_EQ(std::count(urls.begin(), urls.end(), "memory://"), 1);
}

TEST_F(UsualUrlsTest, AreOneForEachBackendThatIsBuilt) {
  ::unsetenv("DLOCK_URL");
  EXPECT_THAT(usual_urls(), testing::Contains(testing::StartsWith("file:///")));
  for (const std::string& url : usual_urls()) {
    EXPECT_THAT(backends(), testing::Contains(url.substr(0, url.find(':'))));
  }
}

}  // namespace
}  // namespace dlock::bench
