// Clients of the row strategies, at random, over connections that break, servers that are slow and answers that are
// lost: nobody has a lock while somebody else relies on it, tokens grow, and nothing is left in the end. A failure says
// its seed.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "rows_fixture.hpp"
#include "torture/rig/sanitizers.hpp"

namespace dlock::postgres {

namespace {

using std::chrono::nanoseconds;

class Simulation {
 public:
  Simulation(std::uint64_t seed, Strategy strategy)
      : random_(seed), engine_(seed), rows_(engine_, strategy), strategy_(strategy) {
    rows_.channel = channel_of(row_options(strategy).schema);
    rows_.notify = [this](const std::string& channel, const std::string& name) { server_.notify(channel, name); };
    server_.reply = [this](const FakeQuery& query) { return reply(query); };
    for (int i = 0; i < 3; ++i) clients_.push_back(make());
  }

  void run(int steps) {
    for (int i = 0; i < steps; ++i) {
      step();
      engine_.advance(chance(30) ? between(0ms, 1500ms) : between(0ms, 60ms));
    }
  }

  // When the faults are over everybody gets the lock, one after the other, and then nobody has it.
  void end() {
    trouble_ = Trouble::none;
    server_.dialling = FakeServer::Dialling::accept;
    for (auto& [name, row] : rows_.rows) row.locked = false;
    server_.release();
    for (int i = 0; i < 4000 && !all_over(); ++i) {
      for (const auto& acquire : acquires_) {
        if (acquire->state == State::held) let_go(*acquire);
      }
      engine_.advance(50ms);
    }
    for (const auto& acquire : acquires_) {
      EXPECT_NE(acquire->state, State::waiting) << "waits for ever for " << acquire->name;
    }
    acquires_.clear();
    int closed = 0;
    for (const auto& client : clients_) client->locks->close([&closed] { ++closed; });
    engine_.advance(10min);
    EXPECT_EQ(closed, static_cast<int>(clients_.size()));
    clients_.clear();
    const auto last = make();
    for (const char* const name : names) {
      const auto attempt = last->contend(name, true);
      engine_.advance(longest_lease + 100ms);
      EXPECT_TRUE(attempt->grant) << "something is left of " << name;
    }
    EXPECT_GT(grants_, 20);
  }

 private:
  enum class Trouble { none, slow, loses, refuses };
  enum class State { waiting, held, over };
  static constexpr const char* names[] = {"x", "y"};
  static constexpr nanoseconds longest_lease = 5s;

  struct Acquire final : GrantSink {
    void granted(Grant what) override { simulation->granted(*this, std::move(what)); }
    void busy() override {
      if (!wait) state = State::over;
    }
    void unreachable(Failure) override {}
    void failed(Failure why) override {
      EXPECT_FALSE(wait) << why.detail;
      state = State::over;
    }

    Simulation* simulation = nullptr;
    RowClient* client = nullptr;
    std::string name;
    bool wait = false;
    State state = State::waiting;
    Grant grant;
    TimePoint valid_until;
    std::unique_ptr<Contention> contention;
  };

  [[nodiscard]] bool chance(int percent) { return static_cast<int>(random_() % 100) < percent; }
  [[nodiscard]] nanoseconds between(nanoseconds low, nanoseconds high) {
    return low + nanoseconds(static_cast<std::int64_t>(random_() % static_cast<std::uint64_t>((high - low).count())));
  }
  [[nodiscard]] std::unique_ptr<RowClient> make() {
    return std::make_unique<RowClient>(engine_, server_, row_options(strategy_));
  }
  [[nodiscard]] bool all_over() const {
    return std::all_of(acquires_.begin(), acquires_.end(),
                       [](const auto& acquire) { return acquire->state == State::over; });
  }
  [[nodiscard]] Acquire* any(State state) {
    std::vector<Acquire*> candidates;
    for (const auto& acquire : acquires_) {
      if (acquire->state == state) candidates.push_back(acquire.get());
    }
    return candidates.empty() ? nullptr : candidates[random_() % candidates.size()];
  }

  // --- What clients do ---

  void step() {
    std::erase_if(acquires_, [](const auto& acquire) { return acquire->state == State::over; });
    switch (random_() % 12) {
      case 0:
      case 1:
      case 2:
      case 3:
        if (acquires_.size() < 20) contend();
        break;
      case 4:
      case 5:
      case 6:
        if (Acquire* const held = any(State::held)) let_go(*held);
        break;
      case 7:
      case 8:
        if (Acquire* const held = any(State::held)) renew(*held);
        break;
      case 9:
        if (Acquire* const waiting = any(State::waiting)) {
          waiting->contention.reset();
          waiting->state = State::over;
        }
        break;
      default:
        make_trouble();
    }
  }

  void contend() {
    auto acquire = std::make_unique<Acquire>();
    acquire->simulation = this;
    acquire->client = clients_[random_() % clients_.size()].get();
    acquire->name = names[random_() % std::size(names)];
    acquire->wait = chance(70);
    const LockRequest request{.name = acquire->name,
                              .owner = acquire->client->host.new_owner_id(),
                              .holder = "host:1:test",
                              .lease = between(100ms, longest_lease),
                              .wait = acquire->wait};
    acquire->contention = acquire->client->locks->contend(request, *acquire);
    acquires_.push_back(std::move(acquire));
  }

  void granted(Acquire& acquire, Grant grant) {
    acquire.state = State::held;
    acquire.grant = grant;
    acquire.valid_until = grant.valid_until;
    const TimePoint now = engine_.now();
    if (now >= grant.valid_until) return;  // it has come too late to be of use
    ++grants_;
    for (const auto& other : acquires_) {
      if (other.get() == &acquire || other->state != State::held || other->name != acquire.name) continue;
      EXPECT_GE(now, other->valid_until) << acquire.name << " has two holders";
    }
    auto& last = tokens_[acquire.name];
    EXPECT_GT(grant.token.value(), last) << acquire.name;
    last = grant.token.value();
  }

  void renew(Acquire& acquire) {
    if (engine_.now() >= acquire.valid_until) return;
    // Whoever is asked for is looked up by its owner: it may have let go meanwhile.
    acquire.client->locks->renew(acquire.grant, [this, owner = acquire.grant.owner](const RenewOutcome& outcome) {
      for (const auto& each : acquires_) {
        if (each->state != State::held || each->grant.owner != owner || engine_.now() >= each->valid_until) continue;
        if (outcome.status == RenewOutcome::Status::renewed) {
          each->valid_until = std::max(each->valid_until, outcome.valid_until);
        }
        EXPECT_NE(outcome.status, RenewOutcome::Status::lost) << "it has not run out, and nobody broke it";
      }
    });
  }

  void let_go(Acquire& acquire) {
    acquire.state = State::over;
    acquire.contention.reset();
    acquire.client->release(acquire.grant);
  }

  // --- What goes wrong ---

  void make_trouble() {
    switch (random_() % 8) {
      case 0:
        return server_.break_connections("broken", chance(50) ? 0 : 1 + static_cast<int>(random_() % 50));
      case 1:
        trouble_ = Trouble::slow;
        return;
      case 2:
        trouble_ = Trouble::loses;
        return;
      case 3:
        trouble_ = Trouble::refuses;
        return;
      case 4:
        server_.dialling = FakeServer::Dialling::fail;
        return;
      case 5:
        if (!rows_.rows.empty()) rows_.rows.begin()->second.locked = !rows_.rows.begin()->second.locked;
        return;
      default:
        trouble_ = Trouble::none;
        server_.dialling = FakeServer::Dialling::accept;
        for (auto& [name, row] : rows_.rows) row.locked = false;
        return server_.release();
    }
  }

  FakeReply reply(const FakeQuery& query) {
    if (trouble_ == Trouble::slow && chance(50)) return FakeReply::held();
    if (trouble_ == Trouble::refuses && chance(50)) {
      const char* const states[] = {"40001", "55P03", "53200", "26000", "25006"};
      return FakeReply::refused(states[random_() % std::size(states)]);
    }
    if (trouble_ == Trouble::loses && chance(30)) {
      if (chance(40)) {
        (void)rows_.carry_out(query);
      } else if (chance(50)) {
        (void)engine_.schedule(engine_.now() + between(0ms, 900ms), [this, query] { (void)rows_.carry_out(query); });
      }
      return FakeReply::lost();
    }
    return rows_.carry_out(query);
  }

  std::mt19937_64 random_;
  test::ManualEngine engine_;
  FakeServer server_;
  FakeLockTable rows_;
  const Strategy strategy_;
  Trouble trouble_ = Trouble::none;
  std::vector<std::unique_ptr<RowClient>> clients_;
  std::vector<std::unique_ptr<Acquire>> acquires_;
  std::map<std::string, std::uint64_t> tokens_;
  int grants_ = 0;
};

class PostgresRowSimulation : public testing::TestWithParam<Strategy> {};
INSTANTIATE_TEST_SUITE_P(Strategies, PostgresRowSimulation, testing::Values(Strategy::table, Strategy::optimistic),
                         [](const auto& strategy) { return std::string(to_string(strategy.param)); });

TEST_P(PostgresRowSimulation, ExcludesAndLeavesNothing) {
  constexpr std::uint64_t seeds = rig::sanitized ? 2 : 10;
  for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Simulation simulation(seed, GetParam());
    simulation.run(400);
    simulation.end();
    if (testing::Test::HasFailure()) return;
  }
}

}  // namespace

}  // namespace dlock::postgres
