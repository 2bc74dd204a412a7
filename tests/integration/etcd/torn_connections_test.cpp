// Connections that break at any byte while locks are taken and given back, by what etcdctl sees of it.
#include <cstdlib>
#include <iostream>
#include <random>

#include "etcd/etcd_test.hpp"

namespace dlock::test {

namespace {

constexpr std::size_t cuts_wanted = dlock::test::sanitized ? 50 : 200;

// A seed of its own for every run; DLOCK_SEED repeats one.
std::uint64_t seed_of_cuts() {
  const char* given = std::getenv("DLOCK_SEED");  // NOLINT(concurrency-mt-unsafe): nobody changes the environment
  const std::uint64_t value = given != nullptr ? std::strtoull(given, nullptr, 10) : std::random_device()();
  std::cout << "DLOCK_SEED=" << value << '\n';
  return value;
}

class TornConnectionsTest : public EtcdTest {
 protected:
  std::uint64_t pick(std::uint64_t most) { return std::uniform_int_distribution<std::uint64_t>(0, most)(random_); }

  static rig::TcpProxy::Counters difference(const rig::TcpProxy::Counters& after,
                                            const rig::TcpProxy::Counters& before) {
    rig::TcpProxy::Counters counters = after;
    counters.to_server.passed -= before.to_server.passed;
    counters.to_client.passed -= before.to_client.passed;
    return counters;
  }
  // The keys of locks: none of the session's, nor those that say that an acquire was given up.
  [[nodiscard]] std::vector<std::string> lock_keys() const {
    std::vector<std::string> all = server.keys("dlock");
    std::erase_if(all, [](const std::string& key) {
      return key.starts_with("dlock/.session/") || key.starts_with("dlock/.gone/");
    });
    return all;
  }

 private:
  std::mt19937_64 random_{seed_of_cuts()};
};

TEST_F(TornConnectionsTest, LeaveNoKeyOfWhatWasGivenBackAndNoWrongBelief) {
  std::optional<Client> client = disturbed({.response_timeout = 1s});
  DistributedLock warm = client->make_lock("warm");
  EXPECT_TRUE(take(warm).release());
  const auto before = proxy.counters();
  EXPECT_TRUE(take(warm).release());
  const auto cycle = difference(proxy.counters(), before);
  std::size_t held = 0;
  std::size_t rounds = 0;
  for (; proxy.counters().cuts < cuts_wanted && rounds < 5 * cuts_wanted; ++rounds) {
    const bool asking = pick(1) == 0;
    proxy.cut_after(asking ? rig::Direction::to_server : rig::Direction::to_client,
                    pick(asking ? cycle.to_server.passed : cycle.to_client.passed),
                    pick(1) == 0 ? rig::Ending::reset : rig::Ending::close);
    const std::string name = "round-" + std::to_string(rounds);
    DistributedLock lock = client->make_lock(name);
    std::optional<Semaphore> semaphore;
    const bool is_lock = pick(3) != 0;
    if (!is_lock) semaphore.emplace(client->make_semaphore(name, 2));
    const AcquireOptions options{.wait = pick(1) == 0 ? 0ms : 1s};
    Outcome outcome = is_lock ? Pending(lock, options).get() : Pending(*semaphore, options).get();
    ASSERT_NE(outcome.error == errc::timed_out, true) << "nobody else wants it";
    if (outcome.lease.held()) {
      ++held;
      EXPECT_EQ(keys.queue(name, is_lock ? LockKind::lock : LockKind::semaphore).size(), 1U) << name;
    }
    std::error_code ignored;  // a release that is cut as well may not know
    (void)outcome.lease.release(ignored);
  }
  EXPECT_GE(proxy.counters().cuts, cuts_wanted);
  EXPECT_GT(held, 0U);
  std::cout << rounds << " rounds, " << held << " held\n";
  proxy.pass();
  await("keys of locks stay while their client lives", [this] { return lock_keys().empty(); });
  client.reset();
  EXPECT_TRUE(lock_keys().empty()) << "a key came after all";
  EXPECT_TRUE(server.keys("dlock").empty()) << "something of a session stays";
}

}  // namespace

}  // namespace dlock::test
