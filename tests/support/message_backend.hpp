// Clients of a memory store that exchange messages with it: a lock service whose network and sessions the test
// simulates, and clients that do what a network requires. Without faults, messages arrive at once.
//
//   struct LoseReplies : dlock::messages::FaultInjector {
//     Delivery plan(const Message& m) override { return {.reply_lost = m.operation == Operation::acquire}; }
//   };
//   faults->inject(std::make_shared<LoseReplies>());
#pragma once

#include <chrono>
#include <functional>
#include <list>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

#include <dlock/spi/cleanup.hpp>
#include <dlock/spi/executor.hpp>
#include <dlock/spi/lifetime.hpp>
#include <dlock/spi/try_backend.hpp>

#include "backends/memory/memory_backend.hpp"
#include "util/mutex.hpp"

namespace dlock::messages {

// `notice` is a message from the store to a client; the others are requests with answers.
enum class Operation { acquire, other_request, notice };

struct Message {
  Operation operation;
  const std::string& holder;  // of the client that sends the request or gets the notice
};

// The treatment of a message. For a notice only `fate` and `delay` count.
struct Delivery {
  enum class Fate {
    arrives,
    lost,
    refused,  // the sender learns at once that nothing was sent
    held,     // until Faults::resume()
  } fate = Fate::arrives;
  std::chrono::nanoseconds delay{};
  bool reply_lost = false;
  std::chrono::nanoseconds reply_delay{};
  std::optional<std::chrono::nanoseconds> duplicate = std::nullopt;  // arrives a second time, so much after sending
};

class FaultInjector {
 public:
  FaultInjector() = default;
  FaultInjector(const FaultInjector&) = delete;
  FaultInjector& operator=(const FaultInjector&) = delete;
  virtual ~FaultInjector() = default;

  // Called in a task of the client concerned; must not call dlock.
  [[nodiscard]] virtual Delivery plan(const Message& message) = 0;
};

// Any thread.
class Faults {
 public:
  // Messages already delayed or held stay so.
  void inject(std::shared_ptr<FaultInjector> injector) {
    const util::MutexLock lock(mutex_);
    injector_ = std::move(injector);
  }
  // Delivers all held messages.
  void resume() {
    const util::MutexLock lock(mutex_);
    for (auto& held : std::exchange(held_, {})) held.executor->post(std::move(held.task));
  }
  // Drops all further messages from and to the clients of this holder.
  void kill(const std::string& holder) {
    const util::MutexLock lock(mutex_);
    killed_.insert(holder);
  }

  // --- For clients ---
  [[nodiscard]] bool killed(const std::string& holder) const {
    const util::MutexLock lock(mutex_);
    return killed_.contains(holder);
  }
  [[nodiscard]] Delivery plan(const Message& message) const {
    std::shared_ptr<FaultInjector> injector;
    {
      const util::MutexLock lock(mutex_);
      injector = injector_;
    }
    return injector ? injector->plan(message) : Delivery{};
  }
  void hold(const void* client, Executor& executor, Executor::Task task) {
    const util::MutexLock lock(mutex_);
    held_.push_back({client, &executor, std::move(task)});
  }
  // Drops held messages of that client; its executor is not used afterwards.
  void forget(const void* client) noexcept {
    const util::MutexLock lock(mutex_);
    std::erase_if(held_, [client](const Held& held) { return held.client == client; });
  }

 private:
  struct Held {
    const void* client;
    Executor* executor;
    Executor::Task task;
  };

  mutable util::Mutex mutex_;
  std::shared_ptr<FaultInjector> injector_ DLOCK_GUARDED_BY(mutex_);
  std::vector<Held> held_ DLOCK_GUARDED_BY(mutex_);
  std::set<std::string> killed_ DLOCK_GUARDED_BY(mutex_);
};

class MessageBackend final : public TryBackend {
 public:
  // The strategy is watch or poll.
  MessageBackend(BackendHost& host, const BackendConfig& config, std::shared_ptr<memory::MemoryStore> store,
                 std::shared_ptr<Faults> faults, memory::Strategy strategy);
  ~MessageBackend() override { faults_->forget(this); }

  [[nodiscard]] Capabilities capabilities() const noexcept override;

  [[nodiscard]] std::unique_ptr<Contention> contend(const LockRequest& request, GrantSink& sink) override;
  void try_acquire(const LockRequest& request, TryHandler done) override;
  [[nodiscard]] std::unique_ptr<Watch> watch(LockKind kind, const std::string& name,
                                             std::function<void()> changed) override;
  void abandon(const LockRequest& request) override { cleanup_.abandon(request, true); }
  void renew(const Grant& grant, RenewHandler done) override;
  void release(const Grant& grant, ReleaseHandler done) override;

  void inspect(LockKind kind, const std::string& name, Handler<LockInfo> done) override;
  void list(LockKind kind, Handler<std::vector<LockInfo>> done) override;
  void break_lock(LockKind kind, const std::string& name, Handler<bool> done) override;
  void forget(const Forgetting& what, Handler<std::vector<std::string>> done) override;
  void close(std::function<void()> done) override;

 private:
  class Trying;
  class Notices;
  struct Exchange;
  using Reply = std::function<void(bool in_time)>;  // runs at the client
  template <class Outcome>
  using Then = std::function<void(Outcome)>;

  // The store executes call(answer), which answers at once. `done` gets the outcome, and `late` any that arrives after
  // it; errc::ambiguous: the response timeout has passed, and the request may yet take effect.
  template <class Outcome, class Call>
  void ask(
      Operation operation, Call call, Then<Outcome> done, Then<Outcome> late = [](const Outcome&) {});
  void send(Operation operation, std::function<Reply()> service, std::function<void(Failure)> unanswered);
  void arrive(const std::shared_ptr<Exchange>& exchange);
  void notify(const std::function<void()>& changed);
  void deliver(const Delivery& delivery, Executor::Task task);
  void after(std::chrono::nanoseconds delay, Executor::Task task);
  std::list<Timer>::iterator schedule(std::chrono::nanoseconds delay, Executor::Task task);
  [[nodiscard]] bool dead() const { return faults_->killed(holder_); }

  Executor& executor_;
  const std::shared_ptr<Faults> faults_;
  const std::string holder_;
  const std::chrono::nanoseconds response_timeout_;
  memory::MemoryBackend store_;         // called when a request arrives
  std::unordered_set<OwnerId> trying_;  // owners of acquires in progress
  std::unordered_set<OwnerId> held_;    // and of grants
  std::list<Timer> timers_;             // destroyed with the client, and with them pending handlers
  Cleanup cleanup_;
  Lifetime lifetime_;
};

}  // namespace dlock::messages
