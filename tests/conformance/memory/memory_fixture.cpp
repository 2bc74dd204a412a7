#include "memory/memory_fixture.hpp"

#include <atomic>
#include <utility>

#include "tests/support/messages/message_backend.hpp"
#include "tests/support/mutants/mutant_backend.hpp"

namespace dlock::conformance {

namespace {

constexpr std::string_view disturbed_label = "disturbed-";

std::string unique_place() {
  static std::atomic<int> count{0};
  return "conformance-" + std::to_string(count.fetch_add(1));
}

}  // namespace

// What happens on the way between the disturbed clients and the store.
class MemoryFixture::Disturbance final : public messages::FaultInjector {
 public:
  enum class Mode { none, stalled, delayed, cut };

  [[nodiscard]] messages::Delivery plan(const messages::Message& message) override {
    using Fate = messages::Delivery::Fate;
    using messages::Operation;
    const bool request = message.operation != Operation::notice;
    if (request) requests_.fetch_add(1);
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
    const bool acquire = message.operation == Operation::try_acquire || message.operation == Operation::enqueue;
    if (acquire && lose_answer_.exchange(false)) return {.reply_lost = true};
    return {};
  }

  void set(Mode mode) { mode_.store(mode); }
  void delay_answers(std::chrono::nanoseconds by) {
    answer_delay_.store(by);
    set(Mode::delayed);
  }
  void lose_next_answer() { lose_answer_.store(true); }
  [[nodiscard]] std::uint64_t requests() const { return requests_.load(); }

 private:
  std::atomic<Mode> mode_{Mode::none};
  std::atomic<std::chrono::nanoseconds> answer_delay_{};
  std::atomic<bool> lose_answer_{false};
  std::atomic<std::uint64_t> requests_{0};
};

MemoryFixture::MemoryFixture(memory::Strategy strategy)
    : place_(unique_place()),
      url_("memory://" + place_ + "?strategy=" + std::string(to_string(strategy))),
      store_(memory::MemoryStore::named(place_)),
      backend_(memory::make_memory_backend) {}

MemoryFixture::MemoryFixture(memory::Strategy strategy, mutants::Mutation mutation)
    : place_(unique_place()),
      url_("memory://" + place_),
      store_(memory::MemoryStore::named(place_)),
      disturbance_(std::make_shared<Disturbance>()) {
  const BackendFactory correct = [this, strategy](BackendHost& host, const BackendConfig& config) {
    return std::make_unique<messages::MessageBackend>(host, config, store_, faults_, strategy);
  };
  backend_ = [this, mutation, correct, service = mutants::make_service()](BackendHost& host,
                                                                          const BackendConfig& config) {
    return mutants::make_mutant(host, config, mutation, store_, service, correct);
  };
  faults_->inject(disturbance_);
}

MemoryFixture::~MemoryFixture() = default;

Client MemoryFixture::make_client(ClientOptions options, Link link) {
  // The label tells clients apart: the store kills sessions by it, and faults act by it.
  const std::string number = std::to_string(++clients_);
  if (link == Link::disturbed) {
    options.label = std::string(disturbed_label) + number;
  } else if (options.label.empty()) {
    options.label = "steady-" + number;
  }
  return connect(url_, std::move(options), backend_);
}

std::optional<Missing> MemoryFixture::missing(Feature feature) const {
  switch (feature) {
    case Feature::processes:
      return Missing{Missing::Kind::not_applicable, "the locks are for one process"};
    case Feature::restart:
      return Missing{Missing::Kind::not_applicable, "the service lives and dies with the process"};
    case Feature::kill_session:
    case Feature::stall:
    case Feature::delay_answers:
    case Feature::cut:
    case Feature::lose_answer:
    case Feature::requests:
      if (disturbance_) return std::nullopt;
      return Missing{Missing::Kind::not_applicable,
                     "calls within the process are always answered, and clients do not die alone"};
    default:
      return std::nullopt;
  }
}

std::shared_ptr<ManualClock> MemoryFixture::clock() {
  if (!clock_) clock_ = std::make_shared<ManualClock>();
  return clock_;
}

const Clock& MemoryFixture::service_clock() const {
  if (clock_) return *clock_;
  return *real_clock_;
}

void MemoryFixture::kill_hold(LockKind kind, const std::string& name) {
  (void)store_->break_lock(kind, name, service_clock());
}
void MemoryFixture::kill_session(Client& client) {
  faults_->kill(client.holder());
  store_->kill(client.holder(), service_clock());
}

void MemoryFixture::stall() {
  disturbance_->set(Disturbance::Mode::stalled);
}
void MemoryFixture::resume() {
  disturbance_->set(Disturbance::Mode::none);
  faults_->resume();
}
void MemoryFixture::delay_answers(std::chrono::nanoseconds by) {
  disturbance_->delay_answers(by);
}
void MemoryFixture::cut() {
  disturbance_->set(Disturbance::Mode::cut);
}
void MemoryFixture::heal() {
  disturbance_->set(Disturbance::Mode::none);
}
void MemoryFixture::lose_next_answer() {
  disturbance_->lose_next_answer();
}

std::size_t MemoryFixture::residue(LockKind kind, const std::string& name) {
  return store_->residue(name, service_clock(), kind);
}

std::uint64_t MemoryFixture::requests() {
  return disturbance_->requests();
}

}  // namespace dlock::conformance
