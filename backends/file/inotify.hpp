// File changes from the kernel: one inotify instance, any number of listeners.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include <dlock/spi/executor.hpp>
#include <dlock/spi/lifetime.hpp>

#include "backends/file/fork_guard.hpp"

namespace dlock::file {

// In tasks only.
class Inotify {
 public:
  explicit Inotify(Executor& executor) : executor_(executor) {}
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

  // Listens to the file that is open under this descriptor, which may be closed afterwards. Returns 0 and replaces
  // `subscription`, or an error number: EMFILE (too many inotify instances of this user), ENOSPC (too many watches).
  // After a failure the next call tries again.
  [[nodiscard]] int subscribe(int fd, std::uint32_t mask, Listener& listener, Subscription& subscription);

 private:
  [[nodiscard]] int start();
  void wait();
  void drain();
  void dispatch(int watch, std::uint32_t mask, std::string_view name);
  void dispatch_to_all(std::uint32_t mask);
  [[nodiscard]] bool listens(int watch, const Listener* listener) const;
  void unsubscribe(int watch, const Listener& listener) noexcept;

  Executor& executor_;
  GuardedFd fd_;
  std::unique_ptr<Descriptor> descriptor_;
  std::unordered_map<int, std::vector<Listener*>> listeners_;  // by watch descriptor
  Lifetime lifetime_;
};

}  // namespace dlock::file
