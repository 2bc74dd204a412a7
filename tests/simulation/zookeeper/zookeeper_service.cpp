// The ZooKeeper backend over an ensemble in memory.
#include <algorithm>
#include <array>
#include <chrono>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "backends/zookeeper/nodes/node_name.hpp"
#include "backends/zookeeper/zookeeper_backend.hpp"
#include "tests/simulation/service.hpp"
#include "tests/unit/zookeeper/fake_handle.hpp"
#include "torture/dice.hpp"

namespace dlock::simulation {
namespace {

using namespace std::chrono_literals;
using zookeeper::FakeEnsemble;
using zookeeper::FakeRequest;
using zookeeper::Strategy;

constexpr std::chrono::seconds shortest_session{3};  // the longest lease
constexpr std::chrono::seconds longest_session{6};
constexpr std::array kinds{LockKind::lock, LockKind::read_write, LockKind::semaphore, LockKind::election};
constexpr std::array<std::string_view, 7> request_names{"create", "set", "get", "exists", "children", "remove", "sync"};

class ZookeeperService final : public Service {
 public:
  ZookeeperService(Executor& executor, std::uint64_t seed, Strategy strategy);

  [[nodiscard]] std::string url() const override { return url_; }
  [[nodiscard]] std::unique_ptr<Backend> connect(int process, BackendHost& host, const BackendConfig& config) override {
    const auto nobody_answers = [](auto&&...) { return std::shared_ptr<void>(); };
    return std::make_unique<zookeeper::ZookeeperBackend>(host, zookeeper::parse_options(config), config.lease,
                                                         ensemble_.handles(process), nobody_answers);
  }
  void cut(int process) override {
    for (const auto session : ensemble_.sessions_of(process)) ensemble_.disconnect(session);
  }
  void set_reachable(int process, bool reachable) override {
    reachable ? (void)ensemble_.unreachable.erase(process) : (void)ensemble_.unreachable.insert(process);
  }
  void expire(int process) override {
    for (const auto session : ensemble_.sessions_of(process)) ensemble_.expire(session);
  }
  void remove_owner(LockKind kind, const std::string& name) override {
    const auto nodes = nodes_of(kind, name);
    if (!nodes.empty()) ensemble_.remove(nodes[dice_.below(nodes.size())]);
  }
  void release_held() override { ensemble_.release_answers(); }
  void bury(int process) override { ensemble_.bury(process); }
  [[nodiscard]] std::size_t owners(LockKind kind, const std::string& name) override {
    return nodes_of(kind, name).size();
  }
  [[nodiscard]] int holder(LockKind kind, const std::string& name) override {
    const auto nodes = nodes_of(kind, name);
    return nodes.empty() ? 0 : ensemble_.process_of(ensemble_.stat(nodes.front()).owner);
  }

 private:
  [[nodiscard]] zookeeper::Fate become_of(const FakeRequest& request) {
    using Become = zookeeper::Fate;
    if (curator_ && dice_.chance(2)) reap();
    const std::string_view name = request_names.at(static_cast<std::size_t>(request.kind));
    switch (fate(request.process, name)) {
      case Fate::lose_request:
        ensemble_.disconnect(request.session);
        return Become::lose_request;
      case Fate::lose_answer:
        ensemble_.disconnect(request.session);
        return Become::lose_answer;
      case Fate::late:
        return Become::late;
      case Fate::hold:
        return Become::hold_answer;
      case Fate::refuse:
        return Become::refuse;
      case Fate::silence:
        return Become::silence;
      case Fate::expire:
        executor_.post([this, process = request.process] { expire(process); });
        return Become::answer;
      case Fate::answer:
      case Fate::duplicate:  // a connection carries a request once
        break;
    }
    return Become::answer;
  }
  // The nodes of those who hold the lock or wait for it, the oldest first.
  [[nodiscard]] std::vector<std::string> nodes_of(LockKind kind, const std::string& name) const {
    const std::string path = zookeeper::lock_path(options_.prefix, name, kind);
    std::vector<std::string> nodes;
    if (options_.strategy == Strategy::ephemeral && ensemble_.exists(path)) nodes = {path};
    for (const std::string& each : ensemble_.children(path)) nodes.push_back(path + '/' + each);
    std::ranges::sort(nodes, {}, [this](const std::string& node) { return ensemble_.stat(node).created; });
    return nodes;
  }
  // Servers remove containers whose last child has gone.
  void reap() {
    for (const LockKind kind : kinds) {
      const std::string parent = zookeeper::kind_path(options_.prefix, kind);
      for (const std::string& child : ensemble_.children(parent)) {
        const std::string path = parent + '/' + child;
        const auto stat = ensemble_.stat(path);
        if (stat.owner == 0 && stat.children == 0) ensemble_.remove(path);
      }
    }
  }

  Executor& executor_;
  torture::Dice dice_;
  const bool curator_;
  const std::string url_;
  const zookeeper::Options options_;
  FakeEnsemble ensemble_;
};

ZookeeperService::ZookeeperService(Executor& executor, std::uint64_t seed, Strategy strategy)
    : executor_(executor),
      dice_(~seed),
      curator_(dice_.chance(50)),
      url_("zookeeper://a,b,c?strategy=" + std::string(to_string(strategy)) +
           "&layout=" + (curator_ ? "curator" : "kazoo") + "&session_timeout=" +
           std::to_string((dice_.chance(50) ? shortest_session : dice_.between(shortest_session, longest_session)) /
                          1ms) +
           "ms"),
      options_(zookeeper::parse_options({.url = Url::parse(url_), .holder = {}, .lease = longest_session})),
      ensemble_(executor) {
  ensemble_.connects_after = dice_.between(1ms, 300ms);
  if (dice_.chance(50)) ensemble_.untold_part = 0.25;
  ensemble_.latency = [this, longest = dice_.between(50us, dice_.chance(20) ? 20ms : 2ms)] {
    return dice_.up_to(longest);
  };
  ensemble_.delay = [this] { return delay(); };
  ensemble_.fate = [this](const FakeRequest& request) { return become_of(request); };
}

Subject subject(std::string name, Strategy strategy, std::vector<LockKind> of) {
  return {.name = std::move(name),
          .kinds = std::move(of),
          .expires_holders = true,
          .recovery = 10s,
          .session = longest_session,
          .make = [strategy](Executor& executor, std::uint64_t seed) {
            return std::make_unique<ZookeeperService>(executor, seed, strategy);
          }};
}

}  // namespace

std::vector<Subject> subjects() {
  using enum LockKind;
  return {subject("sequential", Strategy::sequential, {lock, read_write, semaphore, election}),
          subject("sequential_herd", Strategy::sequential_herd, {lock, election}),
          subject("ephemeral", Strategy::ephemeral, {lock, election})};
}

}  // namespace dlock::simulation
