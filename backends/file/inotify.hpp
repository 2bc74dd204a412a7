// File changes from the kernel: one inotify instance, any number of subscriptions.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string_view>
#include <unordered_map>
#include <vector>

#include <dlock/spi/executor.hpp>
#include <dlock/spi/lifetime.hpp>

#include "backends/file/fork_guard.hpp"

namespace dlock::file {

// In tasks only.
class Inotify {
 public:
  // As inotify(7) says; `entry` is empty unless a directory is watched and the event is about an entry of it.
  // IN_Q_OVERFLOW: events were lost. May end any subscription, its own included.
  using Handler = std::function<void(std::uint32_t mask, std::string_view entry)>;

  // Of one file at a time. Ends with its destruction. Must not outlive the Inotify.
  class Subscription {
   public:
    Subscription() = default;
    Subscription(const Subscription&) = delete;
    Subscription& operator=(const Subscription&) = delete;
    ~Subscription() { reset(); }

    void reset() noexcept;
    [[nodiscard]] bool active() const noexcept { return inotify_ != nullptr; }

   private:
    friend class Inotify;
    Inotify* inotify_ = nullptr;
    int watch_ = -1;
    Handler handler_;
  };

  explicit Inotify(Executor& executor) : executor_(executor) {}

  // Subscribes to the file that is open under this descriptor, which may be closed afterwards; ends what the
  // subscription had. Returns 0 or an error number: EMFILE (too many inotify instances of this user), ENOSPC (too many
  // watches). After a failure the subscription is not active, and the next call tries again.
  [[nodiscard]] int subscribe(int fd, std::uint32_t mask, Subscription& subscription, Handler handler);

 private:
  [[nodiscard]] int start();
  void wait();
  void drain();
  void dispatch(int watch, std::uint32_t mask, std::string_view entry);
  void dispatch_to_all(std::uint32_t mask);

  Executor& executor_;
  GuardedFd fd_;
  std::unique_ptr<Descriptor> descriptor_;
  std::unordered_map<int, std::vector<Subscription*>> subscriptions_;  // by watch descriptor
  Lifetime lifetime_;
};

}  // namespace dlock::file
