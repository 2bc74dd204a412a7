// Faults between the clients of a memory store and the store, for tests: what a network would do to their messages.
//
//   struct LoseReplies : dlock::messages::FaultInjector {
//     Delivery plan(const Message& m) override { return {.reply_lost = m.operation == Operation::renew}; }
//   };
//   faults->inject(std::make_shared<LoseReplies>());
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <dlock/spi/executor.hpp>
#include <dlock/token.hpp>

#include "util/mutex.hpp"

namespace dlock::messages {

// `notice` is a message from the store to a client; all others are requests that are answered.
enum class Operation { try_acquire, enqueue, renew, release, inspect, list, break_lock, forget, notice };

struct Message {
  Operation operation;
  OwnerId owner;              // zero where the operation concerns no single owner
  const std::string& holder;  // of the client that sends the request or gets the notice
};

// What becomes of a message. For a notice only `fate` and `delay` count.
struct Delivery {
  enum class Fate {
    arrives,
    lost,
    refused,  // the sender is told at once that nothing was sent
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

  // Called as a task of the client concerned; must not call back into dlock.
  [[nodiscard]] virtual Delivery plan(const Message& message) = 0;
};

// Any thread.
class Faults {
 public:
  // nullptr: none from now on. What was delayed or held before stays so.
  void inject(std::shared_ptr<FaultInjector> injector) {
    const util::MutexLock lock(mutex_);
    injector_ = std::move(injector);
  }
  // Lets everything go that was held.
  void resume() {
    const util::MutexLock lock(mutex_);
    for (auto& held : std::exchange(held_, {})) held.executor->post(std::move(held.task));
  }

  // Nothing reaches the clients of this holder any more, nor what they send the store.
  void kill(const std::string& holder) {
    const util::MutexLock lock(mutex_);
    killed_.insert(holder);
  }

  // --- For connections ---
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
  void hold(const void* connection, Executor& executor, Executor::Task task) {
    const util::MutexLock lock(mutex_);
    held_.push_back({connection, &executor, std::move(task)});
  }
  // Drops what is held for that connection; its executor is not used afterwards.
  void forget(const void* connection) noexcept {
    const util::MutexLock lock(mutex_);
    std::erase_if(held_, [connection](const Held& held) { return held.connection == connection; });
  }

 private:
  struct Held {
    const void* connection;
    Executor* executor;
    Executor::Task task;
  };

  mutable util::Mutex mutex_;
  std::shared_ptr<FaultInjector> injector_ DLOCK_GUARDED_BY(mutex_);
  std::vector<Held> held_ DLOCK_GUARDED_BY(mutex_);
  std::set<std::string> killed_ DLOCK_GUARDED_BY(mutex_);
};

}  // namespace dlock::messages
