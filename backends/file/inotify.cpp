#include "backends/file/inotify.hpp"

#include <limits.h>
#include <sys/inotify.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <string>
#include <system_error>
#include <utility>

#include <dlock/error.hpp>

namespace dlock::file {

int Inotify::start() {
  if (descriptor_) return 0;
  fd_ = GuardedFd::open([] { return ::inotify_init1(IN_NONBLOCK | IN_CLOEXEC); });
  if (!fd_) return errno;
  try {
    descriptor_ = executor_.watch(fd_.get());
  } catch (const Error&) {  // the executor has no room for it
    fd_.reset();
    return ENOMEM;
  }
  wait();
  return 0;
}

int Inotify::subscribe(int fd, std::uint32_t mask, Subscription& subscription, Handler handler) {
  int error = start();
  int watch = -1;
  if (error == 0) {
    // By way of the descriptor, so that it is this file whatever its path leads to by now.
    watch = ::inotify_add_watch(fd_.get(), ("/proc/self/fd/" + std::to_string(fd)).c_str(), mask);
    error = watch < 0 ? errno : 0;
  }
  if (error == 0) subscriptions_[watch].push_back(&subscription);
  subscription.reset();  // only now, because a second watch of one file is the first one: no event is missed
  if (error == 0) {
    subscription.inotify_ = this;
    subscription.watch_ = watch;
    subscription.handler_ = std::move(handler);
  }
  return error;
}

void Inotify::Subscription::reset() noexcept {
  if (inotify_ == nullptr) return;
  Inotify& inotify = *std::exchange(inotify_, nullptr);
  const auto found = inotify.subscriptions_.find(watch_);
  auto& all = found->second;
  all.erase(std::ranges::find(all, this));
  if (!all.empty()) return;
  inotify.subscriptions_.erase(found);
  (void)::inotify_rm_watch(inotify.fd_.get(), watch_);  // fails when the kernel has dropped it with the file
}

void Inotify::wait() {
  descriptor_->async_wait(Descriptor::Interest::readable, [this](std::error_code ec) {
    // Not known to happen. All subscribers check once more; from then on there is only the fallback of polling.
    if (ec) return dispatch_to_all(IN_Q_OVERFLOW);
    const Lifetime::Watch life = lifetime_.watch();
    drain();
    if (!life.over()) wait();
  });
}

void Inotify::drain() {
  const Lifetime::Watch life = lifetime_.watch();
  alignas(inotify_event) std::array<char, 16 * 1024> buffer;
  for (;;) {
    const ssize_t got = ::read(fd_.get(), buffer.data(), buffer.size());
    if (got <= 0) return;  // drained; an interrupted read is repeated as soon as the executor looks again
    for (std::size_t at = 0; at < static_cast<std::size_t>(got);) {
      inotify_event event{};
      std::memcpy(&event, buffer.data() + at, sizeof event);
      const char* const name = buffer.data() + at + sizeof event;
      at += sizeof event + event.len;
      if ((event.mask & IN_Q_OVERFLOW) != 0) {
        dispatch_to_all(event.mask);
      } else {
        dispatch(event.wd, event.mask, event.len > 0 ? std::string_view(name) : std::string_view());
      }
      if (life.over()) return;
    }
    // A full buffer means that there may be more; anything less was all of it.
    if (static_cast<std::size_t>(got) + sizeof(inotify_event) + NAME_MAX + 1 <= buffer.size()) return;
  }
}

void Inotify::dispatch(int watch, std::uint32_t mask, std::string_view entry) {
  const auto begin = subscriptions_.find(watch);
  if (begin == subscriptions_.end()) return;  // an event from before the end of the subscription
  const std::vector<Subscription*> all = begin->second;
  const Lifetime::Watch life = lifetime_.watch();
  for (Subscription* const each : all) {
    const auto found = subscriptions_.find(watch);
    if (found == subscriptions_.end()) return;
    if (std::ranges::find(found->second, each) == found->second.end()) continue;
    const Handler handler = each->handler_;  // a copy, because the subscription may end while it is being called
    handler(mask, entry);
    if (life.over()) return;
  }
}

void Inotify::dispatch_to_all(std::uint32_t mask) {
  std::vector<int> watches;
  watches.reserve(subscriptions_.size());
  for (const auto& each : subscriptions_) watches.push_back(each.first);
  const Lifetime::Watch life = lifetime_.watch();
  for (const int watch : watches) {
    dispatch(watch, mask, {});
    if (life.over()) return;
  }
}

}  // namespace dlock::file
