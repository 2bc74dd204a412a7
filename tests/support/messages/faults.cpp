#include "tests/support/messages/faults.hpp"

#include <utility>

namespace dlock::messages {

void Faults::inject(std::shared_ptr<FaultInjector> injector) {
  const util::MutexLock lock(mutex_);
  injector_ = std::move(injector);
}

void Faults::resume() {
  const util::MutexLock lock(mutex_);
  for (auto& held : std::exchange(held_, {})) held.executor->post(std::move(held.task));
}

void Faults::kill(const std::string& holder) {
  const util::MutexLock lock(mutex_);
  killed_.insert(holder);
}

bool Faults::killed(const std::string& holder) const {
  const util::MutexLock lock(mutex_);
  return killed_.contains(holder);
}

Delivery Faults::plan(const Message& message) const {
  std::shared_ptr<FaultInjector> injector;
  {
    const util::MutexLock lock(mutex_);
    injector = injector_;
  }
  return injector ? injector->plan(message) : Delivery{};
}

void Faults::hold(const void* connection, Executor& executor, Executor::Task task) {
  const util::MutexLock lock(mutex_);
  held_.push_back({connection, &executor, std::move(task)});
}

void Faults::forget(const void* connection) noexcept {
  const util::MutexLock lock(mutex_);
  std::erase_if(held_, [connection](const Held& held) { return held.connection == connection; });
}

}  // namespace dlock::messages
