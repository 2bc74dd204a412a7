// What tests/simulation has not: acquires of several locks at once, and keys that somebody else removes. No lock has
// two holders, every acquire is answered once, and nothing is left behind.
#include "backends/etcd/etcd_backend.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "fake_etcd.hpp"
#include "tests/support/manual_engine.hpp"
#include "tests/support/recording_host.hpp"

namespace dlock::etcd {
namespace {

using namespace std::chrono_literals;
using dlock::test::Attempt;
using Fate = FakeEtcd::Fate;

class EtcdSimulation {
 public:
  explicit EtcdSimulation(std::uint64_t seed) : dice_(seed), engine_(seed) {
    etcd_.leases_end = true;
    // Where there is a login, no requests go together.
    const std::string hosts = seed % 4 == 0 ? "user:secret@a,b,c" : "a,b,c";
    for (auto& each : clients_) {
      const BackendConfig config{
          .url = Url::parse("etcd://" + hosts + "?session_ttl=" + std::to_string(2 + seed % 5) + "s"),
          .holder = "h",
          .lease = 2s,
          .response_timeout = 1s,
          .connect_timeout = 1s};
      each = std::make_unique<Client>(engine_, config, etcd_);
    }
  }

  void run(int steps) {
    etcd_.fate = [this](std::string_view) { return draw_fate(); };
    for (int i = 0; i < steps && !testing::Test::HasFailure(); ++i) step();
    settle();
  }
  [[nodiscard]] int grants() const noexcept { return grants_; }
  [[nodiscard]] int several_grants() const noexcept { return several_grants_; }
  [[nodiscard]] int removals() const noexcept { return removals_; }

  // All goes well from now on: everybody has a turn, soon.
  void settle() {
    etcd_.fate = nullptr;
    etcd_.deliver_late();
    etcd_.answer_held();
    pass(8s);
    forget();
    EXPECT_TRUE(several_.empty()) << "not answered";
    for (int rounds = 0; rounds < 100 && !all_.empty() && !testing::Test::HasFailure(); ++rounds) {
      for (const auto& each : all_) {
        const bool waits = !each->attempt.grant && !each->attempt.failure && each->attempt.request.wait;
        const bool somebody = std::ranges::any_of(all_, [&](const auto& other) {
          return lock_of(*other) == lock_of(*each) && other->attempt.grant && !over(*other);
        });
        EXPECT_TRUE(!waits || somebody) << "waits for nobody, in round " << rounds;
      }
      for (auto& each : all_) {
        if (each->attempt.grant) release(*each);
      }
      pass(2s);
      forget();
    }
    EXPECT_TRUE(all_.empty());
    EXPECT_EQ(etcd_.values, 0) << "nobody needs them";
    pass(10s);
    for (const auto& [key, value] : etcd_.keys) {
      EXPECT_TRUE(key.starts_with("dlock/.")) << key << " was left behind";
    }
  }

 private:
  struct Client {
    Client(dlock::test::ManualEngine& engine, const BackendConfig& config, FakeEtcd& etcd)
        : host(engine),
          backend(std::make_unique<EtcdBackend>(host, parse_options(config), config.lease, etcd.members())) {}
    dlock::test::RecordingHost host;
    std::unique_ptr<EtcdBackend> backend;
  };
  struct Acquire {
    explicit Acquire(Client& of) : client(of) {}
    Client& client;
    Attempt attempt;
    bool released = false;
  };
  // An acquire of several locks at once.
  struct Several final : GrantSink {
    explicit Several(Client& of) : client(of) {}
    void granted(Grant grant) override {
      grants.push_back(std::move(grant));
      when_granted(grants.back());
    }
    void busy() override { answered(); }
    void unreachable(Failure /*why*/) override { ADD_FAILURE() << "it does not wait"; }
    void failed(Failure /*why*/) override { answered(); }
    void answered() {
      EXPECT_FALSE(std::exchange(over, true)) << "answered twice";
      EXPECT_TRUE(grants.empty());
    }
    Client& client;
    std::vector<LockRequest> requests;
    std::vector<Grant> grants;
    std::function<void(const Grant&)> when_granted;
    bool over = false;
    std::unique_ptr<Contention> contention;
  };
  [[nodiscard]] static const std::string& lock_of(const Acquire& acquire) { return acquire.attempt.request.name; }

  std::uint64_t up_to(std::uint64_t most) { return dice_() % most; }

  Fate draw_fate() {
    if (up_to(100) >= trouble_) return Fate::answered;
    constexpr std::array<Fate, 4> fates = {Fate::carried_out, Fate::lost, Fate::late, Fate::held};
    return fates.at(up_to(fates.size()));
  }

  void step() {
    switch (up_to(16)) {
      case 0:
        etcd_.break_connections();
        break;
      case 1:
        trouble_ = up_to(2) == 0 ? 0 : up_to(30);
        break;
      case 2:
        etcd_.deliver_late();
        break;
      case 3:
        etcd_.answer_held(1 + up_to(4));
        break;
      case 4:
        remove_some_key();
        break;
      case 5:
      case 6:
        if (!all_.empty()) release(*all_[up_to(all_.size())]);
        break;
      case 7:
        give_up();
        break;
      case 8:
        if (!several_.empty()) several_.erase(several_.begin() + static_cast<std::ptrdiff_t>(up_to(several_.size())));
        break;
      case 9:
      case 10:
      case 11:
        if (all_.size() < 14) begin_several();
        break;
      default:
        if (all_.size() < 14) begin();
        break;
    }
    pass(std::chrono::milliseconds(up_to(3) == 0 ? up_to(900) : up_to(20)));
    forget();
  }

  void begin() {
    Client& client = *clients_.at(up_to(clients_.size()));
    auto& acquire = all_.emplace_back(std::make_unique<Acquire>(client));
    acquire->attempt.request = {.name = up_to(3) == 0 ? "m" : "l",
                                .owner = client.host.new_owner_id(),
                                .holder = "h",
                                .lease = 2s,
                                .wait = up_to(4) != 0};
    acquire->attempt.when_granted = [this, &attempt = acquire->attempt] { granted(*attempt.grant); };
    acquire->attempt.contention = client.backend->contend(acquire->attempt.request, acquire->attempt);
  }

  void begin_several() {
    Client& client = *clients_.at(up_to(clients_.size()));
    auto& several = several_.emplace_back(std::make_unique<Several>(client));
    for (const char* name : {"l", "m"}) {
      several->requests.push_back({.name = name, .owner = client.host.new_owner_id(), .holder = "h", .lease = 2s});
    }
    if (up_to(2) == 0) std::ranges::reverse(several->requests);
    several->when_granted = [this](const Grant& grant) { granted(grant); };
    several->contention = client.backend->contend_for_all(several->requests, *several);
  }

  // From now on each of the locks is on its own.
  void part(Several& several) {
    EXPECT_EQ(several.grants.size(), several.requests.size());
    for (std::size_t i = 0; i < several.grants.size(); ++i) {
      auto& acquire = all_.emplace_back(std::make_unique<Acquire>(several.client));
      acquire->attempt.request = several.requests.at(i);
      acquire->attempt.grant = several.grants[i];
    }
    several_grants_ += static_cast<int>(several.grants.size());
    several.grants.clear();
    several.over = true;
  }

  void release(Acquire& acquire) {
    if (!acquire.attempt.grant || std::exchange(acquire.released, true)) return;
    acquire.attempt.contention.reset();
    acquire.client.backend->release(*acquire.attempt.grant, [](const ReleaseOutcome&) {});
  }

  void give_up() {
    if (all_.empty()) return;
    const auto at = all_.begin() + static_cast<std::ptrdiff_t>(up_to(all_.size()));
    if (!(*at)->attempt.grant) all_.erase(at);
  }

  // Of a lock, by somebody else.
  void remove_some_key() {
    std::vector<std::string> keys;
    for (const auto& [key, value] : etcd_.keys) {
      if (!key.starts_with("dlock/.")) keys.push_back(key);
    }
    if (keys.empty()) return;
    const std::string& key = keys.at(up_to(keys.size()));
    removed_.insert({lock_prefix(key), etcd_.keys.at(key).created});
    ++removals_;
    etcd_.remove(key);
  }
  // What comes before the lease.
  [[nodiscard]] static std::string lock_prefix(std::string_view key) {
    return std::string(key.substr(0, key.find('/', key.find('/') + 1) + 1));
  }
  [[nodiscard]] bool removed(const Grant& grant) const {
    return removed_.contains({"dlock/" + grant.name + '/', static_cast<std::int64_t>(grant.token.value())});
  }

  void pass(std::chrono::nanoseconds time) {
    for (std::chrono::nanoseconds left = time;; left -= 50ms) {
      engine_.advance(std::min<std::chrono::nanoseconds>(left, 50ms));
      for (const auto& each : several_) {
        if (!each->grants.empty()) part(*each);
      }
      check();
      if (left <= 50ms) return;
    }
  }

  [[nodiscard]] static bool lost(const Acquire& acquire) {
    return std::ranges::any_of(acquire.client.host.losses,
                               [&](const auto& each) { return each.owner == acquire.attempt.request.owner; });
  }
  [[nodiscard]] bool over(const Acquire& acquire) const {
    if (!acquire.attempt.grant || acquire.released || removed(*acquire.attempt.grant) || lost(acquire)) return true;
    TimePoint until = acquire.attempt.grant->valid_until;
    for (const auto& [owner, at] : acquire.client.host.extensions) {
      if (owner == acquire.attempt.request.owner) until = std::max(until, at);
    }
    return engine_.now() >= until;
  }

  void check() {
    for (const auto& each : all_) check(*each);
    std::map<std::string, int> holders;
    for (const auto& each : all_) holders[lock_of(*each)] += over(*each) ? 0 : 1;
    for (const auto& [lock, count] : holders) EXPECT_LE(count, 1) << lock;
  }

  void check(const Acquire& acquire) const {
    const Attempt& attempt = acquire.attempt;
    EXPECT_FALSE(attempt.failure && attempt.request.wait) << attempt.failure->detail;
    if (!attempt.grant || removed(*attempt.grant)) return;
    if (etcd_.ended.contains(static_cast<std::int64_t>(attempt.grant->token.value()))) return;
    for (const auto& each : acquire.client.host.losses) {
      if (each.owner != attempt.request.owner) continue;
      EXPECT_FALSE(each.why.detail.ends_with(", was removed")) << each.why.detail;
    }
  }

  // At once: before there is news of others.
  void granted(const Grant& grant) {
    ++grants_;
    if (removed(grant)) return;
    for (const auto& each : all_) {
      if (lock_of(*each) != grant.name || over(*each)) continue;
      EXPECT_EQ(each->attempt.grant->owner, grant.owner);
    }
    EXPECT_GT(grant.token, last_tokens_[grant.name]);
    last_tokens_[grant.name] = grant.token;
  }

  // Whoever is through with it.
  void forget() {
    std::erase_if(all_, [](const auto& each) {
      const Attempt& attempt = each->attempt;
      const bool try_is_over = !attempt.request.wait && !attempt.grant && attempt.reported();
      return attempt.failure || try_is_over || each->released || lost(*each);
    });
    std::erase_if(several_, [](const auto& each) { return each->over; });
  }

  std::mt19937_64 dice_;
  dlock::test::ManualEngine engine_;
  FakeEtcd etcd_{engine_};
  std::uint64_t trouble_ = 0;  // percent of the calls
  int grants_ = 0;
  int several_grants_ = 0;
  int removals_ = 0;
  std::map<std::string, FencingToken> last_tokens_;
  std::set<std::pair<std::string, std::int64_t>> removed_;  // keys: their locks, and the revisions that made them
  std::array<std::unique_ptr<Client>, 2> clients_;
  std::vector<std::unique_ptr<Acquire>> all_;
  std::vector<std::unique_ptr<Several>> several_;
};

TEST(EtcdSimulationTest, SeveralAtOnceAndKeysThatAreRemovedLeaveOneHolderAndNothingBehind) {
  int grants = 0;
  int several_grants = 0;
  int removals = 0;
  for (std::uint64_t seed = 1; seed <= 60 && !testing::Test::HasFailure(); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    EtcdSimulation simulation(seed);
    simulation.run(60);
    grants += simulation.grants();
    several_grants += simulation.several_grants();
    removals += simulation.removals();
  }
  EXPECT_GT(grants, 500);
  EXPECT_GT(several_grants, 40);
  EXPECT_GT(removals, 20);
}

}  // namespace
}  // namespace dlock::etcd
