#include "memory/memory_fixture.hpp"

#include <atomic>
#include <utility>

#include "backends/memory/memory_faults.hpp"

namespace dlock::conformance {

namespace {

constexpr std::string_view disturbed_label = "disturbed-";

std::string unique_place() {
  static std::atomic<int> count{0};
  return "conformance-" + std::to_string(count.fetch_add(1));
}

}  // namespace

// What happens on the way between the disturbed clients and the store.
class MemoryFixture::Disturbance final : public memory::FaultInjector {
 public:
  enum class Mode { none, stalled, delayed, cut };

  [[nodiscard]] memory::Delivery plan(const memory::Message& message) override {
    using Fate = memory::Delivery::Fate;
    using memory::Operation;
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

MemoryFixture::MemoryFixture(std::string_view strategy, BackendFactory backend)
    : place_(unique_place()),
      url_("memory://" + place_ + "?strategy=" + std::string(strategy)),
      backend_(std::move(backend)),
      store_(memory::MemoryStore::named(place_)),
      disturbance_(std::make_shared<Disturbance>()) {}

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
  store_->kill_sessions(client.holder(), service_clock());
}

void MemoryFixture::stall() {
  disturbance_->set(Disturbance::Mode::stalled);
  store_->faults().inject(disturbance_);
}

void MemoryFixture::resume() {
  disturbance_->set(Disturbance::Mode::none);
  store_->faults().inject(nullptr);
  store_->faults().resume();
}

void MemoryFixture::delay_answers(std::chrono::nanoseconds by) {
  disturbance_->delay_answers(by);
  store_->faults().inject(disturbance_);
}

void MemoryFixture::cut() {
  disturbance_->set(Disturbance::Mode::cut);
  store_->faults().inject(disturbance_);
}

void MemoryFixture::heal() {
  disturbance_->set(Disturbance::Mode::none);
  store_->faults().inject(nullptr);
}

void MemoryFixture::lose_next_answer() {
  disturbance_->lose_next_answer();
  store_->faults().inject(disturbance_);
}

std::size_t MemoryFixture::residue(LockKind kind, const std::string& name) {
  return store_->residue(name, service_clock(), kind);
}

std::uint64_t MemoryFixture::requests() {
  store_->faults().inject(disturbance_);  // only messages that pass it are counted
  return disturbance_->requests();
}

}  // namespace dlock::conformance
