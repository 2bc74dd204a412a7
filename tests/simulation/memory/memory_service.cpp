#include "tests/simulation/memory/memory_service.hpp"

#include <string_view>
#include <utility>

#include "tests/simulation/memory/memory_backend.hpp"

namespace dlock::simulation {

using namespace std::chrono_literals;

class MemoryService::Messages final : public messages::FaultInjector {
 public:
  Messages(MemoryService& service, std::chrono::nanoseconds latency) : service_(service), latency_(latency) {}

  [[nodiscard]] messages::Delivery plan(const messages::Message& message) override {
    using messages::Delivery;
    const bool notice = message.operation == messages::Operation::notice;
    const int process = process_of(message.holder);
    if (service_.buried_.contains(process)) return {.fate = Delivery::Fate::lost};
    if (service_.unreachable_.contains(process)) return {.fate = Delivery::Fate::refused};
    switch (service_.fate(process, notice ? "notice" : "request")) {
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

MemoryService::MemoryService(Executor& executor, std::uint64_t seed, Way way, memory::Strategy strategy,
                             Mutation mutation)
    : executor_(executor), way_(way), strategy_(strategy), mutation_(mutation) {
  Dice dice(~seed);
  faults_->inject(std::make_shared<Messages>(*this, dice.between(50us, dice.chance(20) ? 20ms : 2ms)));
}

MemoryService::~MemoryService() = default;

std::unique_ptr<Backend> MemoryService::connect(int /*process*/, BackendHost& host, const BackendConfig& config) {
  const BackendFactory correct = [this](BackendHost& inner, const BackendConfig& same) -> std::unique_ptr<Backend> {
    if (way_ == Way::calls) return std::make_unique<memory::MemoryBackend>(inner, store_, strategy_);
    return std::make_unique<messages::MessageBackend>(inner, same, store_, faults_, strategy_);
  };
  return std::make_unique<SimulatedBackend>(
      host, config, executor_.clock(), [&](BackendHost& inner, const BackendConfig& same) {
        return mutants::make_mutant(inner, same, mutation_, store_, mutant_, correct);
      });
}

void MemoryService::set_reachable(int process, bool reachable) {
  if (reachable) {
    unreachable_.erase(process);
  } else {
    unreachable_.insert(process);
  }
}

int MemoryService::holder(LockKind kind, const std::string& name) {
  const LockInfo info = store_->inspect(kind, name, executor_.clock());
  return info.held ? process_of(info.holder) : 0;
}

Subject memory_subject(Way way, memory::Strategy strategy, Mutation mutation) {
  return {.name = (way == Way::calls ? "calls_" : "messages_") + std::string(to_string(strategy)),
          .kinds = {LockKind::lock, LockKind::read_write, LockKind::semaphore, LockKind::election},
          .spoils = way == Way::messages,
          // After this no waiter relies any more on news that were lost: it has tried again.
          .recovery = 10s,
          .make = [way, strategy, mutation](Executor& executor, std::uint64_t seed) {
            return std::make_unique<MemoryService>(executor, seed, way, strategy, mutation);
          }};
}

std::vector<Subject> subjects() {
  std::vector<Subject> all;
  for (const auto strategy : {memory::Strategy::watch, memory::Strategy::poll}) {
    all.push_back(memory_subject(Way::messages, strategy));
  }
  for (const auto strategy : {memory::Strategy::queue, memory::Strategy::watch, memory::Strategy::poll}) {
    all.push_back(memory_subject(Way::calls, strategy));
  }
  return all;
}

}  // namespace dlock::simulation
