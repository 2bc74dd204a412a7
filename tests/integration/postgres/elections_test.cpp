// Elections on a real server, as the core asks the backend for them: here a lock of a client is an election.
#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <dlock/client.hpp>

#include "backends/postgres/libpq/libpq_connection.hpp"
#include "backends/postgres/postgres_backend.hpp"
#include "postgres/shared_server.hpp"
#include "postgres_test.hpp"
#include "torture/rig/hang_guard.hpp"
#include "util/event.hpp"

namespace dlock::test {

namespace {

// What each client says of itself is its label. The first one is also told of changes.
class ElectionBackend final : public Backend {
 public:
  ElectionBackend(BackendHost& host, const BackendConfig& config, std::function<void()> changed)
      : backend_(host, postgres::parse_options(config), postgres::libpq_connections()), value_(config.holder) {
    if (!changed) return;
    // Not before the client has its backend.
    host.executor().post(
        [this, changed = std::move(changed)] { watch_ = backend_.watch(LockKind::election, "x", changed); });
  }

  [[nodiscard]] Capabilities capabilities() const noexcept override { return backend_.capabilities(); }
  [[nodiscard]] std::unique_ptr<Contention> contend(const LockRequest& request, GrantSink& sink) override {
    LockRequest election = request;
    election.kind = LockKind::election;
    election.value = "value of " + value_;
    return backend_.contend(election, sink);
  }
  void renew(const Grant& grant, RenewHandler done) override {
    EXPECT_EQ(grant.kind, LockKind::election);
    backend_.renew(grant, std::move(done));
  }
  void release(const Grant& grant, ReleaseHandler done) override {
    EXPECT_EQ(grant.kind, LockKind::election);
    backend_.release(grant, std::move(done));
  }
  void inspect(LockKind /*kind*/, const std::string& name, Handler<LockInfo> done) override {
    backend_.inspect(LockKind::election, name, std::move(done));
  }
  void list(LockKind /*kind*/, Handler<std::vector<LockInfo>> done) override {
    backend_.list(LockKind::election, std::move(done));
  }
  void break_lock(LockKind /*kind*/, const std::string& name, Handler<bool> done) override {
    backend_.break_lock(LockKind::election, name, std::move(done));
  }
  void forget(const Forgetting& what, Handler<std::vector<std::string>> done) override {
    Forgetting elections = what;
    elections.kind = LockKind::election;
    backend_.forget(elections, std::move(done));
  }
  void close(std::function<void()> done) override {
    watch_.reset();
    backend_.close(std::move(done));
  }

 private:
  postgres::PostgresBackend backend_;
  const std::string value_;
  std::unique_ptr<Watch> watch_;
};

class ElectionsTest : public OnSharedServer<>, public testing::WithParamInterface<Strategy> {
 protected:
  void SetUp() override { server.run("DROP SCHEMA IF EXISTS dlock CASCADE"); }

  [[nodiscard]] std::string url() const {
    return server.url("strategy=" + std::string(postgres::to_string(GetParam())));
  }
  [[nodiscard]] Client candidate(const std::string& label, std::function<void()> changed = nullptr) const {
    return connect(url(), {.label = label},
                   [changed = std::move(changed)](BackendHost& host, const BackendConfig& config) {
                     return std::make_unique<ElectionBackend>(host, config, changed);
                   });
  }
  [[nodiscard]] static bool of_rows() { return !PostgresLock::is_of_sessions(GetParam()); }
};
INSTANTIATE_TEST_SUITE_P(Strategies, ElectionsTest,
                         testing::ValuesIn(tested({Strategy::table, Strategy::optimistic, Strategy::advisory})),
                         strategy_name);

TEST_P(ElectionsTest, HaveOneLeaderWhoSaysWhoItIs) {
  const Client one = candidate("one");
  const Client two = candidate("two");
  DistributedLock first = one.make_lock("x");
  DistributedLock second = two.make_lock("x");
  Lease leading = first.acquire({.wait = 1min});
  EXPECT_FALSE(second.try_acquire());
  const LockInfo info = two.inspect("x");
  EXPECT_TRUE(info.held);
  EXPECT_TRUE(info.holder.ends_with(":one")) << info.holder;
  EXPECT_EQ(info.value, "value of " + info.holder);
  EXPECT_EQ(info.token, leading.token());
  util::Event granted;
  std::optional<Lease> next;
  second.async_acquire({.wait = 1min}, [&](std::error_code, Lease lease) {
    next = std::move(lease);
    granted.set();
  });
  EXPECT_TRUE(leading.release());
  ASSERT_TRUE(granted.wait(rig::hang_guard));
  EXPECT_TRUE(next->held());
  EXPECT_GT(next->token(), leading.token());
  EXPECT_TRUE(one.inspect("x").value.ends_with(":two"));
  EXPECT_TRUE(one.break_lock("x"));
  EXPECT_FALSE(one.inspect("x").held);
}

TEST_P(ElectionsTest, AreNoLocksOfThatName) {
  const Client plain = connect(url());
  const Client candidate_ = candidate("one");
  DistributedLock lock = plain.make_lock("x");
  DistributedLock election = candidate_.make_lock("x");
  const Lease locked = lock.acquire({.wait = 1min});
  const Lease leading = election.acquire({.wait = 1min});
  EXPECT_TRUE(locked.held());
  EXPECT_TRUE(leading.held());
  EXPECT_EQ(plain.inspect("x").value, "");
  EXPECT_EQ(server.value("SELECT count(*) FROM dlock.lease_elect"), GetParam() == Strategy::table ? "1" : "0");
}

TEST_P(ElectionsTest, WhoObservesIsToldOfEachChange) {
  if (!of_rows()) return;  // the service cannot tell
  const Client leader = candidate("leader");
  DistributedLock election = leader.make_lock("x");
  (void)election.acquire({.wait = 1min}).release();
  struct Changes {
    std::array<util::Event, 3> each;
    std::size_t seen = 0;  // by the observer's engine
  };
  const auto changes = std::make_shared<Changes>();
  const Client observer = candidate("observer", [changes] {
    if (changes->seen < changes->each.size()) changes->each.at(changes->seen++).set();
  });
  ASSERT_TRUE(changes->each[0].wait(rig::hang_guard)) << "the watch comes into effect";
  Lease leading = election.acquire({.wait = 1min});
  ASSERT_TRUE(changes->each[1].wait(rig::hang_guard)) << "somebody leads";
  EXPECT_TRUE(leading.release());
  ASSERT_TRUE(changes->each[2].wait(rig::hang_guard)) << "nobody leads any more";
}

}  // namespace

}  // namespace dlock::test
