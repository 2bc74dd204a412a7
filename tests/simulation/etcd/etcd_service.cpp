// The etcd backend over a cluster in memory.
#include <algorithm>
#include <array>

#include "backends/etcd/etcd_backend.hpp"
#include "backends/etcd/locks/keys.hpp"
#include "tests/simulation/service.hpp"
#include "tests/unit/etcd/fake_etcd.hpp"
#include "torture/dice.hpp"

namespace dlock::simulation {
namespace {

using namespace std::chrono_literals;
using etcd::FakeEtcd;
using etcd::GrpcStatus;

constexpr std::chrono::seconds shortest_session{3};  // the longest lease
constexpr std::chrono::seconds longest_session{6};

const GrpcStatus invalid_token{.code = GrpcStatus::unauthenticated, .message = "etcdserver: invalid auth token"};

class EtcdService final : public Service {
 public:
  EtcdService(Executor& executor, std::uint64_t seed, bool login);

  [[nodiscard]] std::string url() const override { return url_; }
  [[nodiscard]] std::unique_ptr<Backend> connect(int process, BackendHost& host, const BackendConfig& config) override {
    return std::make_unique<etcd::EtcdBackend>(host, etcd::parse_options(config), config.lease, etcd_.members(process));
  }
  void cut(int process) override { etcd_.cut(process); }
  void set_reachable(int process, bool reachable) override {
    reachable ? (void)etcd_.unreachable.erase(process) : (void)etcd_.unreachable.insert(process);
  }
  void expire(int process) override {
    for (const auto& [lease, ttl] : std::map<std::int64_t, std::int64_t>(etcd_.leases)) {
      if (etcd_.processes[lease] == process) etcd_.end_lease(lease);
    }
  }
  void remove_owner(LockKind kind, const std::string& name) override {
    const auto keys = etcd_.keys_below(etcd::lock_prefix(options_, kind, name));
    if (!keys.empty()) etcd_.remove(keys[dice_.below(keys.size())]);
  }
  void release_held() override { etcd_.answer_held(); }
  void bury(int process) override { etcd_.bury(process); }
  [[nodiscard]] std::size_t owners(LockKind kind, const std::string& name) override {
    return etcd_.keys_below(etcd::lock_prefix(options_, kind, name)).size();
  }
  [[nodiscard]] int holder(LockKind kind, const std::string& name) override {
    const auto keys = etcd_.keys_below(etcd::lock_prefix(options_, kind, name));
    const auto first =
        std::ranges::min_element(keys, {}, [this](const auto& key) { return etcd_.keys.at(key).created; });
    return first == keys.end() ? 0 : etcd_.processes[etcd_.keys.at(*first).lease];
  }

 private:
  [[nodiscard]] GrpcStatus draw(FakeEtcd::Call call) {
    drawn_ = fate(call.process, call);
    // Watches may be of members that lag behind.
    etcd_.lag = dice_.chance(20) ? static_cast<std::int64_t>(dice_.below(20)) : 0;
    if (dice_.chance(1)) etcd_.compact();
    if (call == etcd::method_authenticate) {
      tokens_end_.erase(call.process);
      logged_in_[call.process] = executor_.now();
    } else if (tokens_end_.contains(call.process)) {
      return invalid_token;
    }
    if (drawn_ == Fate::answer) return {};
    rough_until_ = executor_.now() + 1s;
    if (dice_.chance(2)) elect();
    return drawn_ == Fate::refuse ? refusal(call) : GrpcStatus{};
  }
  // For a while the leader before may not know of it, and answers keep-alives.
  void elect() {
    if (dice_.chance(50)) {
      etcd_.term_of_keep_alives = etcd_.term;
      deposed_.arm(executor_.now() + dice_.up_to(longest_session), [this] { etcd_.term_of_keep_alives.reset(); });
    }
    etcd_.elect();
  }
  [[nodiscard]] FakeEtcd::Fate become_of(FakeEtcd::Call call) {
    using Become = FakeEtcd::Fate;
    switch (drawn_) {
      case Fate::lose_request:
        etcd_.cut(call.process);
        return Become::lost;
      case Fate::lose_answer:
        if (dice_.chance(70)) etcd_.cut(call.process);  // otherwise the client leaves the member that does not answer
        return Become::carried_out;
      case Fate::silence:
        etcd_.silence(call.process);
        return Become::lost;
      case Fate::late:
        return Become::late;
      case Fate::hold:
        return Become::held;
      case Fate::expire:
        executor_.post([this, process = call.process] { expire(process); });
        return Become::answered;
      case Fate::answer:
      case Fate::duplicate:  // a member carries out a call once
      case Fate::refuse:
        break;
    }
    return Become::answered;
  }
  [[nodiscard]] GrpcStatus refusal(FakeEtcd::Call call) {
    static const std::array<GrpcStatus, 4> statuses{
        GrpcStatus{.code = GrpcStatus::unavailable, .message = "etcdserver: no leader"},
        GrpcStatus{.code = GrpcStatus::unavailable, .message = "etcdserver: leader changed"},
        GrpcStatus{.code = GrpcStatus::unavailable, .message = "etcdserver: request timed out"},
        GrpcStatus{.code = GrpcStatus::resource_exhausted, .message = "etcdserver: too many requests"}};
    // A client repeats a request once, with another token. None lives so briefly that this may fail, too.
    const auto logged_in = logged_in_.find(call.process);
    const bool old = login_ && logged_in != logged_in_.end() && executor_.now() > logged_in->second + 1s;
    if (!old || call == etcd::method_authenticate || !dice_.chance(20))
      return statuses.at(dice_.below(statuses.size()));
    tokens_end_.insert(call.process);
    return invalid_token;
  }

  Executor& executor_;
  torture::Dice dice_;
  const bool login_;
  const std::string url_;
  const etcd::Options options_;
  const std::chrono::nanoseconds latency_;  // at most, in good times
  FakeEtcd etcd_;
  Fate drawn_ = Fate::answer;
  std::map<int, TimePoint> logged_in_;  // processes
  std::set<int> tokens_end_;            // of these, until they log in again
  TimePoint rough_until_;
  Timer deposed_;
};

EtcdService::EtcdService(Executor& executor, std::uint64_t seed, bool login)
    : executor_(executor),
      dice_(~seed),
      login_(login),
      url_(std::string("etcd://") + (login ? "user:secret@" : "") + "a,b,c?session_ttl=" +
           std::to_string(
               (dice_.chance(50) ? shortest_session : dice_.between(shortest_session, longest_session + 1s)) / 1s) +
           "s"),
      options_(etcd::parse_options({.url = Url::parse(url_), .holder = {}, .lease = longest_session})),
      latency_(dice_.between(50us, dice_.chance(20) ? 20ms : 2ms)),
      etcd_(executor),
      deposed_(executor) {
  etcd_.leases_end = true;
  etcd_.latency = [this] { return dice_.up_to(latency_); };
  etcd_.delay = [this] { return delay(); };
  // Only in bad times, because a lock that is free in good ones must be handed over soon.
  etcd_.news_delay = [this] { return dice_.up_to(executor_.now() < rough_until_ && dice_.chance(20) ? 1s : latency_); };
  etcd_.status = [this](FakeEtcd::Call call) { return draw(call); };
  etcd_.fate = [this](FakeEtcd::Call call) { return become_of(call); };
}

Subject subject(std::string name, bool login) {
  return {.name = std::move(name),
          .kinds = {LockKind::lock, LockKind::read_write, LockKind::semaphore, LockKind::election},
          .expires_holders = true,
          .recovery = 10s,
          .session = longest_session,
          .make = [login](Executor& executor, std::uint64_t seed) {
            return std::make_unique<EtcdService>(executor, seed, login);
          }};
}

}  // namespace

std::vector<Subject> subjects() {
  return {subject("queue", false), subject("login", true)};
}

}  // namespace dlock::simulation
