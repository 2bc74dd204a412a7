// The memory backend, and clients that exchange messages with its store, as subjects of the suite. Calls within a
// process are always answered; messages can be disturbed in all of the suite's ways.
//
// For the tests of the suite itself, the first argument may select a different subject instead:
//   --mutation=NAME          a backend that is broken so ("none": correct), with plain locks
//   --sharing-mutation=NAME  with locks that several may hold
//   --untested=TEST,...      a correct one, whose fixture can do little and leaves these tests untested
#include <algorithm>
#include <atomic>
#include <chrono>
#include <functional>
#include <iostream>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <dlock/conformance/suite.hpp>

#include "backends/memory/memory_backend.hpp"
#include "backends/memory/memory_store.hpp"
#include "tests/support/message_backend.hpp"
#include "tests/support/mutants/mutant_backend.hpp"
#include "tests/support/mutants/mutation.hpp"

namespace dlock::conformance {
namespace {

constexpr std::string_view disturbed_label = "disturbed-";

std::string unique_place() {
  static std::atomic<int> count{0};
  return "conformance-" + std::to_string(count.fetch_add(1));
}

// Disturbs the messages between the disturbed clients and the store.
class Disturbance final : public messages::FaultInjector {
 public:
  enum class Mode { none, stalled, delayed, cut };

  [[nodiscard]] messages::Delivery plan(const messages::Message& message) override {
    using Fate = messages::Delivery::Fate;
    using messages::Operation;
    const bool request = message.operation != Operation::notice;
    if (message.holder.find(":" + std::string(disturbed_label)) == std::string::npos) return {};
    switch (mode_.load()) {
      case Mode::stalled:
        return {.fate = Fate::held};
      case Mode::delayed:
        if (request) return {.reply_delay = answer_delay_.load()};
        return {.delay = answer_delay_.load()};
      case Mode::cut:
        return {.fate = request ? Fate::refused : Fate::lost};
      case Mode::none:
        break;
    }
    return {.reply_lost = message.operation == Operation::acquire && lose_answer_.exchange(false)};
  }

  void set(Mode mode) { mode_.store(mode); }
  void delay_answers(std::chrono::nanoseconds by) {
    answer_delay_.store(by);
    set(Mode::delayed);
  }
  void lose_next_answer() { lose_answer_.store(true); }

 private:
  std::atomic<Mode> mode_{Mode::none};
  std::atomic<std::chrono::nanoseconds> answer_delay_{};
  std::atomic<bool> lose_answer_{false};
};

class MemoryFixture final : public Fixture {
 public:
  using Mode = Disturbance::Mode;

  explicit MemoryFixture(memory::Strategy strategy)
      : url_("memory://" + place_ + "?strategy=" + std::string(to_string(strategy))),
        backend_(memory::make_memory_backend) {}

  // Clients that can be disturbed exchange messages with the store; so do the others, unless there is a mutation.
  explicit MemoryFixture(std::optional<mutants::Mutation> mutation)
      : url_("memory://" + place_), disturbance_(std::make_shared<Disturbance>()) {
    const BackendFactory correct = [this, mutation](BackendHost& host,
                                                    const BackendConfig& config) -> std::unique_ptr<Backend> {
      const bool steady = config.holder.find(":" + std::string(disturbed_label)) == std::string::npos;
      if (mutation && steady) return std::make_unique<memory::MemoryBackend>(host, store_, memory::Strategy::queue);
      return std::make_unique<messages::MessageBackend>(host, config, store_, faults_, memory::Strategy::watch);
    };
    backend_ = correct;
    if (mutation) {
      backend_ = [this, mutation, correct, service = mutants::make_service()](BackendHost& host,
                                                                              const BackendConfig& config) {
        return mutants::make_mutant(host, config, *mutation, store_, service, correct);
      };
    }
    faults_->inject(disturbance_);
  }

  [[nodiscard]] std::string url() const override { return url_; }
  [[nodiscard]] Client make_client(ClientOptions options, Link link) override {
    // The label identifies a client: for killing its session in the store, and for faults.
    const std::string number = std::to_string(++clients_);
    if (link == Link::disturbed) {
      options.label = std::string(disturbed_label) + number;
    } else if (options.label.empty()) {
      options.label = "steady-" + number;
    }
    return connect(url_, std::move(options), backend_);
  }
  [[nodiscard]] std::optional<Missing> missing(Feature feature) const override {
    using Kind = Missing::Kind;
    switch (feature) {
      case Feature::processes:
        return Missing{Kind::not_applicable, "the locks are for one process"};
      case Feature::restart:
        return Missing{Kind::not_applicable, "the service lives and dies with the process"};
      case Feature::requests:
        return Missing{Kind::not_applicable, "no strategy by messages wakes one waiter alone"};
      case Feature::kill_session:
      case Feature::stall:
      case Feature::delay_answers:
      case Feature::cut:
      case Feature::lose_answer:
        if (disturbance_) return std::nullopt;
        return Missing{Kind::not_applicable,
                       "calls within the process are always answered, and clients do not die alone"};
      default:
        return std::nullopt;
    }
  }
  [[nodiscard]] std::shared_ptr<ManualClock> clock() override {
    if (!clock_) clock_ = std::make_shared<ManualClock>();
    return clock_;
  }
  void kill_hold(LockKind kind, const std::string& name) override {
    (void)store_->break_lock(kind, name, service_clock());
  }
  void kill_session(Client& client) override {
    faults_->kill(client.holder());
    store_->kill(client.holder(), service_clock());
  }
  void stall() override { disturbance_->set(Mode::stalled); }
  void resume() override {
    disturbance_->set(Mode::none);
    faults_->resume();
  }
  void delay_answers(std::chrono::nanoseconds by) override { disturbance_->delay_answers(by); }
  void cut() override { disturbance_->set(Mode::cut); }
  void heal() override { disturbance_->set(Mode::none); }
  void lose_next_answer() override { disturbance_->lose_next_answer(); }
  [[nodiscard]] std::size_t residue(LockKind kind, const std::string& name) override {
    return store_->residue(name, service_clock(), kind);
  }

 private:
  [[nodiscard]] const Clock& service_clock() const {
    if (clock_) return *clock_;
    return *real_clock_;
  }

  const std::string place_ = unique_place();
  const std::string url_;
  const std::shared_ptr<memory::MemoryStore> store_ = memory::MemoryStore::named(place_);
  const std::shared_ptr<Disturbance> disturbance_;  // of messages
  const std::shared_ptr<messages::Faults> faults_ = std::make_shared<messages::Faults>();
  BackendFactory backend_;
  std::shared_ptr<ManualClock> clock_;
  const std::shared_ptr<Clock> real_clock_ = boottime_clock();
  int clients_ = 0;
};

void add_memory_subjects() {
  using enum memory::Strategy;
  const auto add = [](std::string name, bool client_tests, std::function<std::unique_ptr<Fixture>()> make) {
    add_subject({.name = std::move(name),
                 .make = std::move(make),
                 .client_tests = client_tests,
                 .kinds = {LockKind::lock, LockKind::read_write, LockKind::semaphore, LockKind::election},
                 .untested = std::vector<std::string>()});
  };
  add("memory_queue", true, [] { return std::make_unique<MemoryFixture>(queue); });
  add("memory_watch", false, [] { return std::make_unique<MemoryFixture>(watch); });
  add("memory_poll", false, [] { return std::make_unique<MemoryFixture>(poll); });
  add("messages_watch", false, [] { return std::make_unique<MemoryFixture>(std::nullopt); });
}

// list: names, separated by commas.
void add_listed(std::string_view list) {
  std::vector<std::string> untested;
  while (!list.empty()) {
    const auto end = std::min(list.find(','), list.size());
    untested.emplace_back(list.substr(0, end));
    list.remove_prefix(std::min(end + 1, list.size()));
  }
  add_subject({.name = "listed",
               .make = [] { return std::make_unique<UrlFixture>("memory://untested-lists"); },
               .untested = std::move(untested)});
}

// Returns whether there is such a mutation.
bool add_mutant(std::string_view name, std::vector<LockKind> kinds) {
  const auto mutation = mutants::parse_mutation(name);
  if (!mutation) return false;
  add_subject({.name = "mutant",
               .make = [mutation] { return std::make_unique<MemoryFixture>(mutation); },
               .kinds = std::move(kinds)});
  return true;
}

}  // namespace
}  // namespace dlock::conformance

int main(int argc, char** argv) {
  using namespace dlock::conformance;
  using dlock::LockKind;
  const std::string_view first = argc > 1 ? argv[1] : "";
  const std::string_view value = first.substr(std::min(first.find('=') + 1, first.size()));
  bool good = true;
  if (first.starts_with("--untested=")) {
    add_listed(value);
  } else if (first.starts_with("--mutation=")) {
    good = add_mutant(value, {LockKind::lock});
  } else if (first.starts_with("--sharing-mutation=")) {
    good = add_mutant(value, {LockKind::read_write, LockKind::semaphore});
  } else {
    add_memory_subjects();
    return run(argc, argv);
  }
  if (!good) {
    std::cerr << "unknown mutation: " << first << '\n';
    return exit_usage;
  }
  argv[1] = argv[0];
  return run(argc - 1, argv + 1);
}
