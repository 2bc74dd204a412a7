// File changes from the kernel: one inotify instance, any number of listeners, of several executors. Each function is
// called in a task of some executor; a listener is called in tasks of its own.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include <dlock/spi/executor.hpp>

#include "backends/file/fork_guard.hpp"
#include "util/mutex.hpp"

namespace dlock::file {

class Inotify : public std::enable_shared_from_this<Inotify> {
 public:
  class Listener {
   public:
    Listener() = default;
    Listener(const Listener&) = delete;
    Listener& operator=(const Listener&) = delete;
    // As inotify(7) says; `name` is empty unless a directory is watched and the event is about an entry of it. With
    // IN_Q_OVERFLOW anything may have happened. May end any subscription, its own included.
    virtual void on_event(std::uint32_t mask, std::string_view name) = 0;

   protected:
    ~Listener() = default;
  };

  // Ends with its destruction. Must not outlive the Inotify.
  class Subscription {
   public:
    Subscription() noexcept = default;
    Subscription(Inotify& inotify, int watch, Listener& listener) noexcept
        : inotify_(&inotify), watch_(watch), listener_(&listener) {}
    Subscription(Subscription&& other) noexcept
        : inotify_(std::exchange(other.inotify_, nullptr)), watch_(other.watch_), listener_(other.listener_) {}
    Subscription& operator=(Subscription&& other) noexcept {
      if (this != &other) {
        reset();
        inotify_ = std::exchange(other.inotify_, nullptr);
        watch_ = other.watch_;
        listener_ = other.listener_;
      }
      return *this;
    }
    ~Subscription() { reset(); }

    void reset() noexcept {
      if (inotify_ != nullptr) std::exchange(inotify_, nullptr)->unsubscribe(watch_, *listener_);
    }
    [[nodiscard]] bool active() const noexcept { return inotify_ != nullptr; }

   private:
    Inotify* inotify_ = nullptr;
    int watch_ = -1;
    Listener* listener_ = nullptr;
  };

  // Listens to what is open under this descriptor, which may be closed afterwards, in tasks of this executor, whose
  // task the call is. Answers 0 and replaces `subscription`, or an error number: EMFILE (too many inotify instances of
  // this user), ENOSPC (too many watches). After a failure the next call tries again.
  [[nodiscard]] int subscribe(Executor& executor, int fd, std::uint32_t mask, Listener& listener,
                              Subscription& subscription) DLOCK_EXCLUDES(mutex_);

 private:
  struct Listening {
    Listener* listener;
    Executor* executor;
    friend bool operator==(const Listening&, const Listening&) = default;
  };

  [[nodiscard]] int start(Executor& executor) DLOCK_REQUIRES(mutex_);
  void wait();
  void drain();
  void dispatch(int watch, std::uint32_t mask, std::string_view name) DLOCK_EXCLUDES(mutex_);
  void dispatch_to_all(std::uint32_t mask) DLOCK_EXCLUDES(mutex_);
  [[nodiscard]] bool listens(int watch, const Listening& listening) DLOCK_EXCLUDES(mutex_);
  void unsubscribe(int watch, const Listener& listener) noexcept DLOCK_EXCLUDES(mutex_);

  // Set once, by the first subscriber; events are read in tasks of its executor.
  GuardedFd fd_;
  Executor* reader_ = nullptr;
  std::unique_ptr<Descriptor> descriptor_;

  util::Mutex mutex_;                                                                   // a leaf
  std::unordered_map<int, std::vector<Listening>> listeners_ DLOCK_GUARDED_BY(mutex_);  // by watch descriptor
};

}  // namespace dlock::file
