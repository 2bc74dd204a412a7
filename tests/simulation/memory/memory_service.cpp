#include "tests/simulation/memory/memory_service.hpp"

#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include <dlock/client.hpp>

#include "backends/memory/memory_store.hpp"
#include "tests/support/message_backend.hpp"
#include "tests/support/mutants/mutant_backend.hpp"

namespace dlock::simulation {
namespace {

using namespace std::chrono_literals;
using std::chrono::nanoseconds;

// The process's engine in the service's time.
class ServiceExecutor final : public Executor {
 public:
  ServiceExecutor(Executor& engine, const Clock& service)
      : engine_(engine), own_(dynamic_cast<const SimulatedClock&>(engine.clock())), service_(service) {}

  // From the end of a lease in the service's time to the process's.
  [[nodiscard]] TimePoint translate(TimePoint valid_until, nanoseconds lease) const {
    const nanoseconds usable = lease_valid_until(TimePoint(), lease) - TimePoint();
    return own_.at(valid_until - usable) + usable;
  }
  [[nodiscard]] const Clock& clock() const noexcept override { return service_; }
  void post(Task task) override { engine_.post(std::move(task)); }
  [[nodiscard]] TimerId schedule(TimePoint at, Task task) override {
    return engine_.schedule(own_.not_before(at), std::move(task));
  }
  void cancel(TimerId id) noexcept override { engine_.cancel(id); }
  [[nodiscard]] std::uint64_t random() override { return engine_.random(); }
  [[nodiscard]] std::unique_ptr<Descriptor> watch(int fd) override { return engine_.watch(fd); }

 private:
  Executor& engine_;
  const SimulatedClock& own_;
  const Clock& service_;
};

// A backend for a process with a clock of its own, over a memory store.
//
// The clients of a memory store share a clock. Here the backend lives in the service's time, and its answers are
// translated where they pass to the core: a lease begins at the same instant on both clocks, and its length is counted
// on the process's. That is what a client does whose service tells it no times.
class SimulatedBackend final : public Backend, private BackendHost {
 public:
  SimulatedBackend(BackendHost& host, const BackendConfig& config, const Clock& service, const BackendFactory& inner)
      : host_(host), executor_(host.executor(), service), inner_(inner(*this, config)) {}

  [[nodiscard]] Capabilities capabilities() const noexcept override { return inner_->capabilities(); }
  [[nodiscard]] std::unique_ptr<Contention> contend(const LockRequest& request, GrantSink& sink) override {
    return std::make_unique<Attempt>(*this, request, sink);
  }
  void renew(const Grant& grant, RenewHandler done) override {
    inner_->renew(grant, [this, lease = grant.lease, done = std::move(done)](RenewOutcome outcome) {
      if (outcome.status == RenewOutcome::Status::renewed) {
        outcome.valid_until = executor_.translate(outcome.valid_until, lease);
      }
      done(std::move(outcome));
    });
  }
  void release(const Grant& grant, ReleaseHandler done) override { inner_->release(grant, std::move(done)); }
  void inspect(LockKind kind, const std::string& name, Handler<LockInfo> done) override {
    inner_->inspect(kind, name, std::move(done));
  }
  void list(LockKind kind, Handler<std::vector<LockInfo>> done) override { inner_->list(kind, std::move(done)); }
  void break_lock(LockKind kind, const std::string& name, Handler<bool> done) override {
    inner_->break_lock(kind, name, std::move(done));
  }
  void forget(const Forgetting& what, Handler<std::vector<std::string>> done) override {
    inner_->forget(what, std::move(done));
  }
  void close(std::function<void()> done) override { inner_->close(std::move(done)); }

 private:
  class Attempt final : public Contention, private GrantSink {
   public:
    Attempt(SimulatedBackend& backend, const LockRequest& request, GrantSink& sink)
        : backend_(backend), sink_(sink), lease_(request.lease), inner_(backend.inner_->contend(request, *this)) {}

   private:
    void granted(Grant grant) override {
      grant.valid_until = backend_.executor_.translate(grant.valid_until, lease_);
      sink_.granted(std::move(grant));
    }
    void busy() override { sink_.busy(); }
    void unreachable(Failure why) override { sink_.unreachable(std::move(why)); }
    void failed(Failure why) override { sink_.failed(std::move(why)); }

    SimulatedBackend& backend_;
    GrantSink& sink_;
    const nanoseconds lease_;
    const std::unique_ptr<Contention> inner_;
  };

  // --- BackendHost ---
  [[nodiscard]] Executor& executor() noexcept override { return executor_; }
  void extended(const OwnerId& owner, TimePoint valid_until) override { host_.extended(owner, valid_until); }
  void lost(const OwnerId& owner, Failure why) override { host_.lost(owner, std::move(why)); }
  void connection(ConnectionEvent event) override { host_.connection(std::move(event)); }
  void warn(WarningEvent event) override { host_.warn(std::move(event)); }
  [[nodiscard]] OwnerId new_owner_id() override { return host_.new_owner_id(); }

  BackendHost& host_;
  ServiceExecutor executor_;
  const std::unique_ptr<Backend> inner_;
};

class MemoryService final : public Service {
 public:
  MemoryService(Executor& executor, std::uint64_t seed, Way way, memory::Strategy strategy, Mutation mutation)
      : executor_(executor), way_(way), strategy_(strategy), mutation_(mutation) {
    Dice dice(~seed);
    faults_->inject(std::make_shared<Messages>(*this, dice.between(50us, dice.chance(20) ? 20ms : 2ms)));
  }

  [[nodiscard]] std::string url() const override { return "memory://"; }
  [[nodiscard]] std::unique_ptr<Backend> connect(int /*process*/, BackendHost& host,
                                                 const BackendConfig& config) override {
    const BackendFactory correct = [this](BackendHost& inner, const BackendConfig& same) -> std::unique_ptr<Backend> {
      if (way_ == Way::calls) return std::make_unique<memory::MemoryBackend>(inner, store_, strategy_);
      return std::make_unique<messages::MessageBackend>(inner, same, store_, faults_, strategy_);
    };
    return std::make_unique<SimulatedBackend>(
        host, config, executor_.clock(), [&](BackendHost& inner, const BackendConfig& same) {
          return mutants::make_mutant(inner, same, mutation_, store_, mutant_, correct);
        });
  }
  void set_reachable(int process, bool reachable) override {
    reachable ? (void)unreachable_.erase(process) : (void)unreachable_.insert(process);
  }
  void release_held() override { faults_->resume(); }
  void bury(int process) override { buried_.insert(process); }
  [[nodiscard]] std::size_t owners(LockKind kind, const std::string& name) override {
    return store_->residue(name, executor_.clock(), kind);
  }
  [[nodiscard]] int holder(LockKind kind, const std::string& name) override {
    return process_of(store_->inspect(kind, name, executor_.clock()));
  }

 private:
  class Messages final : public messages::FaultInjector {
   public:
    Messages(MemoryService& service, nanoseconds latency) : service_(service), latency_(latency) {}

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
    const nanoseconds latency_;  // of a message, in good times
  };

  Executor& executor_;
  const Way way_;
  const memory::Strategy strategy_;
  const Mutation mutation_;
  const std::shared_ptr<memory::MemoryStore> store_ = std::make_shared<memory::MemoryStore>();
  const std::shared_ptr<messages::Faults> faults_ = std::make_shared<messages::Faults>();
  const std::shared_ptr<mutants::Service> mutant_ = mutants::make_service();
  std::set<int> unreachable_;
  std::set<int> buried_;
};

}  // namespace

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
