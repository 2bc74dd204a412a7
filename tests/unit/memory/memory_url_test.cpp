#include <gtest/gtest.h>

#include <string>
#include <thread>
#include <vector>

#include <dlock/dlock.hpp>

#include "tests/support/refusals.hpp"

namespace dlock::memory {
namespace {

// --- The URL ---------------------------------------------------------------------------------------------------------

TEST(MemoryUrl, IsRefusedWithTheOffendingPart) {
  test::expect_refused([](const std::string& url) { return connect(url); }, {{"memory://a?strategy=fifo", "strategy"},
                                                                             {"memory://a?strategy=", "strategy"},
                                                                             {"memory://a?colour=red", "colour"},
                                                                             {"memory://a/b", "path"},
                                                                             {"memory:///b", "path"},
                                                                             {"memory://a:80", "port"},
                                                                             {"memory://a,b", "list"},
                                                                             {"memory://user:hidden@a", "user"}});
}

TEST(MemoryName, ClientsOfOneNameShareTheirLocks) {
  const Client one = connect("memory://shared");
  const Client same = connect("memory://shared?strategy=watch");
  const Client other = connect("memory://other");
  const Client unnamed = connect("memory://");
  const Lease lease = one.make_lock("x").acquire();
  EXPECT_FALSE(same.make_lock("x").try_acquire());
  EXPECT_TRUE(other.make_lock("x").try_acquire());
  EXPECT_TRUE(unnamed.make_lock("x").try_acquire());
}

TEST(MemoryName, TokensGrowThoughTheStoreIsForgottenInBetween) {
  FencingToken last;
  for (int i = 0; i < 10; ++i) {
    const Client client = connect("memory://forgotten");
    const Lease lease = client.make_lock("x").acquire();
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
      DistributedLock lock = client.make_lock("counter");
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
