// Many who want few advisory locks, give up at any moment, and are disturbed by the server all the while.
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <mutex>
#include <random>
#include <set>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "postgres/postgres_test.hpp"
#include "tests/support/postgres_connection.hpp"
#include "tests/support/sanitizers.hpp"
#include "torture/rig/hang_guard.hpp"

namespace dlock::test {

namespace {

constexpr std::size_t clients = 3;
constexpr std::size_t threads_of_each = 4;
constexpr std::size_t names = 3;
constexpr auto duration = dlock::test::sanitized ? 2s : 4s;
constexpr std::size_t enough_grants = 20;  // fewer show little

// What a lock protects, and what shows that it does.
struct Resource {
  std::mutex mutex;
  std::uint64_t last_token = 0;
  std::uint64_t entries = 0;
  std::set<std::uint64_t> tokens;
};

class AdvisoryStressTest : public PostgresTest {
 protected:
  using Random = std::mt19937_64;

  // A slow machine needs longer.
  [[nodiscard]] bool goes_on() const {
    const auto now = std::chrono::steady_clock::now();
    return now < end_ || (grants_ <= enough_grants && now < end_ + rig::hang_guard);
  }

  void work(const Client& client, std::size_t seed) {
    Random random(seed);
    std::vector<DistributedLock> locks;
    for (std::size_t i = 0; i < names; ++i) locks.push_back(client.make_lock("shared/" + std::to_string(i)));
    while (goes_on()) {
      const std::size_t which = random() % names;
      std::stop_source cancel;
      std::jthread canceller;
      AcquireOptions options{.wait = std::chrono::microseconds(random() % 50'000), .cancel = cancel.get_token()};
      if (random() % 3 == 0) options.wait = 0s;
      if (random() % 5 == 0) {
        canceller = std::jthread([&cancel, pause = std::chrono::microseconds(random() % 20'000)] {
          std::this_thread::sleep_for(pause);  // a moment like any other
          cancel.request_stop();
        });
      }
      std::error_code ec;
      const Lease lease = locks[which].acquire(options, ec);
      if (!ec) use(resources_[which], lease, random);
    }
  }

  // Whoever is still safe afterwards was alone all the while.
  void use(Resource& resource, const Lease& lease, Random& random) {
    std::uint64_t mine = 0;
    {
      const std::scoped_lock guard(resource.mutex);
      if (!lease.held()) return;  // lost since, and somebody else may have been faster to come here
      mine = ++resource.entries;
      if (!resource.tokens.insert(lease.token()).second) again_.fetch_add(1);
      grants_.fetch_add(1);
      if (lease.token() <= resource.last_token) backward_.fetch_add(1);
      resource.last_token = lease.token();
    }
    if (random() % 2 == 0) std::this_thread::sleep_for(std::chrono::microseconds(random() % 1000));
    const std::scoped_lock guard(resource.mutex);
    const bool alone = resource.entries == mine;
    if (!alone && lease.held()) together_.fetch_add(1);
  }

  // Does that to sessions of theirs, again and again, so many seconds apart.
  void disturb(const std::string& function, const std::string& pause) {
    PostgresConnection sql(server.admin_conninfo());
    while (goes_on()) {
      sql.run("SELECT pg_sleep(" + pause + "), " + function +
              "(pid) FROM pg_stat_activity WHERE usename = 'locker' ORDER BY random() LIMIT 1");
    }
  }

  void run(const std::string& disturbance, const std::string& pause) {
    const std::uint64_t seed = std::random_device{}();
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::vector<Client> all;
    for (std::size_t i = 0; i < clients; ++i) {
      all.push_back(connect(server.url("strategy=advisory&max_connections=3"), {.lease = 10s}));
    }
    end_ = std::chrono::steady_clock::now() + duration;
    {
      std::vector<std::jthread> workers;
      workers.emplace_back([&] { disturb(disturbance, pause); });
      for (std::size_t i = 0; i < clients * threads_of_each; ++i) {
        workers.emplace_back([&, i] { work(all[i % clients], seed + i); });
      }
    }
    EXPECT_EQ(again_, 0);
    RecordProperty("grants", std::to_string(grants_));
    EXPECT_GT(grants_, enough_grants);
    // The clients are still there: no session keeps what nobody holds.
    await_in_server("NOT EXISTS (SELECT FROM pg_locks WHERE locktype = 'advisory')");
    for (std::size_t i = 0; i < names; ++i) {
      for (const Client& client : all) {
        DistributedLock lock = client.make_lock("shared/" + std::to_string(i));
        EXPECT_TRUE(take(lock).release());
      }
    }
  }

  std::chrono::steady_clock::time_point end_;
  std::array<Resource, names> resources_;
  std::atomic<std::size_t> grants_{0};
  std::atomic<int> again_{0};
  std::atomic<int> backward_{0};
  std::atomic<int> together_{0};
};

TEST_F(AdvisoryStressTest, NobodyIsEverTogetherWithAnotherAndNothingIsLeft) {
  run("pg_cancel_backend", "0.002");
  EXPECT_EQ(together_, 0);
  EXPECT_EQ(backward_, 0);
}

// The server has freed the lock by the time the holder hears that its session was ended, so that two may be at work for
// a moment. Their tokens tell them apart.
TEST_F(AdvisoryStressTest, NothingIsLeftBySessionsThatTheServerEnds) {
  run("pg_terminate_backend", "0.1");
}

}  // namespace

}  // namespace dlock::test
