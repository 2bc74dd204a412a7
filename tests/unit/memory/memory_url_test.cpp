#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <dlock/dlock.hpp>

namespace dlock::memory {
namespace {

// --- The URL ---------------------------------------------------------------------------------------------------------

class MemoryUrl : public testing::TestWithParam<std::pair<const char*, const char*>> {};

TEST_P(MemoryUrl, IsRefusedWithTheOffendingPart) {
  const auto& [url, part] = GetParam();
  try {
    (void)connect(url);
    FAIL() << url << " was accepted";
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), errc::invalid_argument);
    EXPECT_THAT(e.what(), testing::HasSubstr(part));
    EXPECT_THAT(e.what(), testing::Not(testing::HasSubstr("hunter2")));
  }
}

INSTANTIATE_TEST_SUITE_P(Bad, MemoryUrl,
                         testing::Values(std::pair("memory://a?strategy=fifo", "strategy"),
                                         std::pair("memory://a?strategy=", "strategy"),
                                         std::pair("memory://a?colour=red", "colour"),
                                         std::pair("memory://a/b", "path"), std::pair("memory:///b", "path"),
                                         std::pair("memory://a:80", "port"), std::pair("memory://a,b", "list"),
                                         std::pair("memory://user:hunter2@a", "user")));

TEST(MemoryName, ClientsOfOneNameShareTheirLocks) {
  const Client one = connect("memory://shared");
  const Client same = connect("memory://shared?strategy=watch");
  const Client other = connect("memory://other");
  const Client unnamed = connect("memory://");
  const Lease lease = one.lock("x").acquire();
  EXPECT_FALSE(same.lock("x").try_acquire());
  EXPECT_TRUE(other.lock("x").try_acquire());
  EXPECT_TRUE(unnamed.lock("x").try_acquire());
}

TEST(MemoryName, TokensGrowThoughTheStoreIsForgottenInBetween) {
  FencingToken last;
  for (int i = 0; i < 10; ++i) {
    const Client client = connect("memory://forgotten");
    const Lease lease = client.lock("x").acquire();
    EXPECT_GT(lease.token(), last);
    last = lease.token();
  }
}

// --- Real threads ----------------------------------------------------------------------------------------------------

class MemoryThreads : public testing::TestWithParam<const char*> {};

TEST_P(MemoryThreads, OfSeveralClientsExcludeEachOther) {
  constexpr int kThreads = 6;
  constexpr int kRounds = 50;
  int counter = 0;  // not atomic: only the lock protects it
  FencingToken last;
  std::vector<std::jthread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&] {
      const Client client = connect(std::string("memory://threads?strategy=") + GetParam());
      DistributedLock lock = client.lock("counter");
      for (int round = 0; round < kRounds; ++round) {
        Lease lease = lock.acquire();
        EXPECT_GT(lease.token(), last);
        last = lease.token();
        ++counter;
        EXPECT_TRUE(lease.release());
      }
    });
  }
  threads.clear();
  EXPECT_EQ(counter, kThreads * kRounds);
}

INSTANTIATE_TEST_SUITE_P(Strategies, MemoryThreads, testing::Values("queue", "watch", "poll"),
                         [](const auto& strategy) { return std::string(strategy.param); });

}  // namespace
}  // namespace dlock::memory
