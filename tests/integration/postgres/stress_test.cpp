// Many clients that contend for few locks and give up at any moment, while the server's settings, poolers and
// administrators disturb them.
#include <array>
#include <atomic>
#include <cstdint>
#include <mutex>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "postgres/postgres_test.hpp"
#include "tests/support/pgbouncer.hpp"
#include "torture/rig/hang_guard.hpp"

namespace dlock::test {

namespace {

struct Stress {
  Strategy strategy;
  std::string disturbance;

  [[nodiscard]] std::string name() const { return strategy_word(strategy) + "_" + disturbance; }
};
void PrintTo(const Stress& stress, std::ostream* out) {
  *out << stress.name();
}

constexpr std::size_t client_count = 3;
constexpr std::size_t threads_of_each = 4;
constexpr std::size_t lock_count = 3;
constexpr std::size_t enough_grants = 100;  // fewer show little
constexpr auto time_of_stress = dlock::test::sanitized ? 1s : 2s;

class PostgresStressTest : public PostgresTest, public testing::WithParamInterface<Stress> {
 protected:
  using Random = std::mt19937_64;

  // A lock, and what shows that it protects.
  struct Resource {
    std::string name;
    std::mutex mutex;
    std::uint64_t last_token = 0;
    std::uint64_t entries = 0;
    std::set<std::uint64_t> tokens;
  };

  PostgresStressTest() {
    for (std::size_t i = 0; i < lock_count; ++i) resources_.at(i).name = "shared/" + std::to_string(i);
  }

  // The server's errors may end what has a time limit.
  [[nodiscard]] static bool errors() {
    return GetParam().disturbance == "queries_cancelled" || GetParam().disturbance == "sessions_ended";
  }
  // The server has freed the lock by the time its holder receives that its session has ended, so two may be at work for
  // a moment. Their tokens tell them apart.
  [[nodiscard]] static bool may_overlap() {
    return GetParam().disturbance == "sessions_ended" && lives_in_sessions(GetParam().strategy);
  }
  // A slow machine needs longer.
  [[nodiscard]] bool goes_on() const {
    const auto now = std::chrono::steady_clock::now();
    return now < end_ || (grants_ <= enough_grants && now < end_ + rig::hang_guard);
  }

  void work(const Client& client, std::size_t seed) {
    Random random(seed);
    while (goes_on()) {
      Resource& resource = resources_.at(random() % lock_count);
      DistributedLock lock = client.make_lock(resource.name);
      const bool unlimited = random() % 2 == 0;
      Pending pending(lock, {.wait = unlimited ? forever : Duration(std::chrono::microseconds(random() % 50'000))});
      const bool cancelled = random() % 5 == 0;
      if (cancelled) {
        (void)pending.event().wait_for(std::chrono::microseconds(random() % 20'000));
        pending.cancel();
      }
      const Outcome outcome = pending.get();
      const bool unanswered = outcome.error == errc::unavailable || outcome.error == errc::ambiguous;
      if (!outcome.error) {
        use(resource, outcome.lease, random);
      } else if (!(cancelled && outcome.error == errc::cancelled)) {
        EXPECT_FALSE(unlimited) << outcome.error.message();
        EXPECT_TRUE(outcome.error == errc::timed_out || (errors() && unanswered)) << outcome.error.message();
      }
    }
  }

  // A lease that is still held afterwards was alone all the while.
  void use(Resource& resource, const Lease& lease, Random& random) {
    std::uint64_t mine = 0;
    {
      const std::scoped_lock guard(resource.mutex);
      if (!lease.held()) return;  // lost since, and the next holder may have come here first
      mine = ++resource.entries;
      if (!resource.tokens.insert(lease.token()).second) again_.fetch_add(1);
      if (lease.token() <= resource.last_token) backward_.fetch_add(1);
      resource.last_token = lease.token();
      grants_.fetch_add(1);
    }
    const Event nothing;
    if (random() % 2 == 0) (void)nothing.wait_for(std::chrono::microseconds(random() % 1000));
    const std::scoped_lock guard(resource.mutex);
    if (resource.entries != mine && lease.held()) together_.fetch_add(1);
  }

  // Only a grant allows the next disturbance: a slow machine would do nothing but connect again.
  void disturb() {
    const bool cancels = GetParam().disturbance == "queries_cancelled";
    PostgresConnection sql(server.admin_conninfo());
    std::size_t last = 0;
    while (goes_on()) {
      sql.run(cancels ? "SELECT pg_sleep(0.002)" : "SELECT pg_sleep(0.1)");
      const std::size_t granted = grants_;
      if (granted == last) continue;
      last = granted;
      sql.run(
          std::string("SELECT ") + (cancels ? "pg_cancel_backend" : "pg_terminate_backend") +
          "(pid) FROM pg_stat_activity WHERE usename = 'locker' ORDER BY random() LIMIT (1 + 6 * random())::bigint");
    }
  }

  [[nodiscard]] std::string url(const std::optional<PgBouncer>& pooler) const {
    const auto strategy = GetParam().strategy;
    if (pooler) return server.url_at(pooler->port(), with(strategy, "pooler=transaction"));
    return server.url(with(strategy, lives_in_sessions(strategy) ? "max_connections=3" : ""));
  }

  std::chrono::steady_clock::time_point end_;
  std::array<Resource, lock_count> resources_;
  std::atomic<std::size_t> grants_{0};
  std::atomic<int> again_{0};
  std::atomic<int> backward_{0};
  std::atomic<int> together_{0};
};

// Shows: one-holder, no-residue, hole postgresql-connection-ends
// Hazard: another default isolation makes contention an error
TEST_P(PostgresStressTest, DisturbedClients_ExcludeEachOtherAndLeaveNothing) {
  const std::string& disturbance = GetParam().disturbance;
  if (!errors()) {
    server.run(std::string("ALTER ROLE locker SET default_transaction_isolation = '") +
               (disturbance == "repeatable_read" ? "repeatable read'" : "serializable'"));
  }
  std::optional<PgBouncer> pooler;
  if (disturbance == "serializable_behind_pooler") pooler.emplace(server);
  const std::uint64_t seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::vector<Client> all;
  for (std::size_t i = 0; i < client_count; ++i) all.push_back(connect_patiently(url(pooler), patient()));
  (void)all.front().initialize();
  end_ = std::chrono::steady_clock::now() + time_of_stress;
  {
    std::vector<std::jthread> workers;
    if (errors()) workers.emplace_back([&] { disturb(); });
    for (std::size_t i = 0; i < client_count * threads_of_each; ++i) {
      workers.emplace_back([&, i] { work(all[i % client_count], seed + i); });
    }
  }
  EXPECT_EQ(again_, 0) << "tokens that were granted twice";
  EXPECT_TRUE(may_overlap() || together_ == 0) << together_ << " met another holder";
  EXPECT_TRUE(may_overlap() || backward_ == 0) << backward_ << " tokens were too small";
  EXPECT_GT(grants_, enough_grants);
  // The clients are still there: nothing keeps a lock that none of them holds.
  for (const Resource& resource : resources_) {
    server.await("(" + PostgresLock(GetParam().strategy, resource.name).residue() + ") = 0");
    for (const Client& client : all) {
      DistributedLock lock = client.make_lock(resource.name);
      EXPECT_TRUE(take(lock).release());
    }
  }
}

std::vector<Stress> stresses() {
  std::vector<Stress> some;
  for (const Strategy strategy : tested()) {
    for (const std::string disturbance :
         {"serializable", "repeatable_read", "serializable_behind_pooler", "queries_cancelled", "sessions_ended"}) {
      if (disturbance == "serializable_behind_pooler" && lives_in_sessions(strategy)) continue;
      some.push_back({strategy, disturbance});
    }
  }
  return some;
}

INSTANTIATE_TEST_SUITE_P(, PostgresStressTest, testing::ValuesIn(stresses()),
                         [](const auto& test) { return test.param.name(); });

}  // namespace

}  // namespace dlock::test
