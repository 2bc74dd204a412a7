#include "tests/simulation/memory/memory_service.hpp"

#include <charconv>
#include <utility>

#include "backends/memory/memory_faults.hpp"
#include "tests/simulation/memory/memory_backend.hpp"

namespace dlock::simulation {
namespace {

using namespace std::chrono_literals;

// "host:pid:7" is process 7.
int process_of(std::string_view holder) {
  const std::string_view label = holder.substr(holder.rfind(':') + 1);
  int number = 0;
  (void)std::from_chars(label.data(), label.data() + label.size(), number);  // 0 is none
  return number;
}

}  // namespace

class MemoryService::Messages final : public memory::FaultInjector {
 public:
  explicit Messages(MemoryService& service)
      : service_(service), latency_(service.dice_.between(50us, service.dice_.chance(20) ? 20ms : 2ms)) {}

  [[nodiscard]] memory::Delivery plan(const memory::Message& message) override {
    using memory::Delivery;
    const bool notice = message.operation == memory::Operation::notice;
    const int process = process_of(message.holder);
    if (service_.buried_.contains(process)) return {.fate = Delivery::Fate::lost};
    if (notice && service_.mutation == Mutation::lost_wake_up) return {.fate = Delivery::Fate::lost};
    if (service_.unreachable_.contains(process)) return {.fate = Delivery::Fate::refused};
    switch (service_.fate ? service_.fate(process, notice ? "notice" : "request") : Fate::answer) {
      case Fate::lose_request:
      case Fate::silence:
        return {.fate = Delivery::Fate::lost};
      case Fate::refuse:
        return {.fate = Delivery::Fate::refused};
      case Fate::lose_answer:
        return {.delay = latency_, .reply_lost = true};
      case Fate::late:
        return {.delay = service_.delay(), .reply_delay = service_.delay()};
      case Fate::duplicate:
        return {.delay = service_.delay(), .reply_delay = service_.delay(), .duplicate = service_.delay()};
      case Fate::hold:
        return {.fate = Delivery::Fate::held, .reply_delay = latency_};
      case Fate::answer:
      case Fate::expire:
        break;
    }
    return {.delay = latency_, .reply_delay = latency_};
  }

 private:
  MemoryService& service_;
  const std::chrono::nanoseconds latency_;  // of a message, in good times
};

MemoryService::MemoryService(Executor& service_executor, std::uint64_t seed, memory::Strategy way_to_wait,
                             Mutation broken)
    : executor(service_executor),
      strategy(way_to_wait),
      mutation(broken),
      dice_(~seed),
      messages_(std::make_shared<Messages>(*this)),
      next_way_(service_executor) {
  store->faults().inject(messages_);
  // What is to lose messages must have some.
  if (mutation != Mutation::lost_wake_up && dice_.chance(20)) change_way();
}

MemoryService::~MemoryService() = default;

std::unique_ptr<Backend> MemoryService::connect(int /*process*/, BackendHost& host, const BackendConfig& config) {
  return std::make_unique<SimulatedBackend>(host, config, *this);
}

void MemoryService::set_reachable(int process, bool reachable) {
  if (reachable) {
    unreachable_.erase(process);
  } else {
    unreachable_.insert(process);
  }
}

void MemoryService::bury(int process) {
  buried_.insert(process);
  if (std::exchange(direct_, false)) store->faults().inject(messages_);
}

int MemoryService::holder(LockKind kind, const std::string& name) {
  const LockInfo info = store->inspect(kind, name, executor.clock());
  return info.held ? process_of(info.holder) : 0;
}

void MemoryService::change_way() {
  direct_ = !direct_;
  store->faults().inject(direct_ ? nullptr : messages_);
  next_way_.arm(executor.now() + dice_.up_to(2s), [this] { change_way(); });
}

Subject memory_subject(memory::Strategy strategy, Mutation mutation) {
  using enum memory::Strategy;
  return {.name = strategy == queue   ? "queue"
                  : strategy == watch ? "watch"
                                      : "poll",
          .kinds = {LockKind::lock, LockKind::read_write, LockKind::semaphore, LockKind::election},
          // After this no waiter of a queue relies any more on news that were lost: it has asked again.
          .recovery = 10s,
          .make = [strategy, mutation](Executor& executor, std::uint64_t seed) {
            return std::make_unique<MemoryService>(executor, seed, strategy, mutation);
          }};
}

std::vector<Subject> subjects() {
  using enum memory::Strategy;
  return {memory_subject(queue), memory_subject(watch), memory_subject(poll)};
}

}  // namespace dlock::simulation
