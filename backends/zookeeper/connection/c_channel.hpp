// Passes results from the client library's threads to tasks of the handle. The library keeps pointers to these objects.
#pragma once

#include <zookeeper/zookeeper.h>

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <dlock/spi/executor.hpp>

#include "backends/zookeeper/connection/handle.hpp"
#include "util/mutex.hpp"

namespace dlock::zookeeper {

class CHandle;

// Lives until the library is closed.
class LibraryChannel final : public std::enable_shared_from_this<LibraryChannel> {
 public:
  LibraryChannel(Executor& executor, CHandle& handle) : handle_(&handle), executor_(&executor) {}

  // Calls f with the handle in a task, in the order of the calls, unless the handle is gone by then. Any thread.
  template <class F>
  void post(F f) {
    const util::MutexLock lock(mutex_);
    if (executor_ == nullptr) return;
    executor_->post([self = shared_from_this(), f = std::move(f)] {
      if (self->handle_ != nullptr) f(*self->handle_);
    });
  }

  // The thread that opens the library hands it over. False: it is no longer wanted.
  [[nodiscard]] bool hand_over(zhandle_t* library) {
    const util::MutexLock lock(mutex_);
    if (!abandoned_) library_ = library;
    return !abandoned_;
  }
  // nullptr: it was not opened, or not yet; then hand_over() returns false.
  [[nodiscard]] zhandle_t* take_for_closing() {
    const util::MutexLock lock(mutex_);
    abandoned_ = true;
    return std::exchange(library_, nullptr);
  }

  // The handle and the executor are about to be destroyed. In tasks only.
  void leave() {
    handle_ = nullptr;
    const util::MutexLock lock(mutex_);
    executor_ = nullptr;
  }

 private:
  CHandle* handle_;  // in tasks only; nullptr: gone
  util::Mutex mutex_;
  Executor* executor_ DLOCK_GUARDED_BY(mutex_);  // nullptr: gone
  bool abandoned_ DLOCK_GUARDED_BY(mutex_) = false;
  zhandle_t* library_ DLOCK_GUARDED_BY(mutex_) = nullptr;
};

// A request in flight. The library has a pointer to it until it is completed or the handle is closed.
struct LibraryOperation {
  using Answer = std::function<void(const Outcome&, LibraryOperation&)>;
  template <class T>
  [[nodiscard]] static Answer with_value(Handle::Handler<T> done) {
    return [done = std::move(done)](const Outcome& outcome, LibraryOperation& came) {
      if constexpr (std::is_same_v<T, zookeeper::Stat>) {
        done(outcome, came.stat);
      } else if constexpr (std::is_same_v<T, std::vector<std::string>>) {
        done(outcome, std::move(came.names));
      } else {
        done(outcome, {std::move(came.text), came.stat});
      }
    };
  }
  [[nodiscard]] static Answer without_value(Handle::DoneHandler done) {
    return [done = std::move(done)](const Outcome& outcome, LibraryOperation&) { done(outcome); };
  }

  LibraryChannel* channel = nullptr;
  std::uint64_t id = 0;
  std::string path = {};
  TimePoint sent = {};
  Answer answer = nullptr;  // in tasks only

  // The answer. Written before the task that reads it is posted.
  int code = ZOK;
  std::string text = {};
  zookeeper::Stat stat = {};
  std::vector<std::string> names = {};
  std::array<zoo_op_result_t, 3> results = {};  // of a transaction
};

}  // namespace dlock::zookeeper
