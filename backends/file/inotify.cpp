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

int Inotify::subscribe(int fd, std::uint32_t mask, Listener& listener, Subscription& subscription) {
  if (const int error = start(); error != 0) return error;
  // By way of the descriptor, so that it is this file whatever its path leads to by now.
  const int watch = ::inotify_add_watch(fd_.get(), ("/proc/self/fd/" + std::to_string(fd)).c_str(), mask);
  if (watch < 0) return errno;
  listeners_[watch].push_back(&listener);
  subscription = Subscription(*this, watch, listener);
  return 0;
}

void Inotify::unsubscribe(int watch, const Listener& listener) noexcept {
  const auto found = listeners_.find(watch);
  if (found == listeners_.end()) return;
  auto& all = found->second;
  if (const auto at = std::find(all.begin(), all.end(), &listener); at != all.end()) all.erase(at);
  if (!all.empty()) return;
  listeners_.erase(found);
  (void)::inotify_rm_watch(fd_.get(), watch);  // fails when the kernel has dropped it with the file
}

void Inotify::wait() {
  descriptor_->async_wait(Descriptor::Interest::readable, [this](std::error_code ec) {
    // Not known to happen. All listeners check once more; from then on there is only the fallback of polling.
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

void Inotify::dispatch(int watch, std::uint32_t mask, std::string_view name) {
  const auto found = listeners_.find(watch);
  if (found == listeners_.end()) return;  // an event from before the end of the subscription
  const std::vector<Listener*> all = found->second;
  const Lifetime::Watch life = lifetime_.watch();
  for (Listener* const listener : all) {
    if (listens(watch, listener)) listener->on_event(mask, name);
    if (life.over()) return;
  }
}

void Inotify::dispatch_to_all(std::uint32_t mask) {
  std::vector<int> watches;
  watches.reserve(listeners_.size());
  for (const auto& entry : listeners_) watches.push_back(entry.first);
  const Lifetime::Watch life = lifetime_.watch();
  for (const int watch : watches) {
    dispatch(watch, mask, {});
    if (life.over()) return;
  }
}

bool Inotify::listens(int watch, const Listener* listener) const {
  const auto found = listeners_.find(watch);
  return found != listeners_.end() &&
         std::find(found->second.begin(), found->second.end(), listener) != found->second.end();
}

}  // namespace dlock::file
