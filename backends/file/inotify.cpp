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
  const std::string path = "/proc/self/fd/" + std::to_string(fd);
  const int watch = ::inotify_add_watch(fd_.get(), path.c_str(), mask);
  if (watch < 0) return errno;
  listeners_[watch].push_back(&listener);
  subscription = Subscription(*this, watch, listener);
  return 0;
}

void Inotify::unsubscribe(int watch, const Listener& listener) noexcept {
  const auto found = listeners_.find(watch);
  if (found == listeners_.end()) return;
  auto& listening = found->second;
  const auto at = std::find(listening.begin(), listening.end(), &listener);
  if (at != listening.end()) listening.erase(at);
  if (!listening.empty()) return;
  listeners_.erase(found);
  (void)::inotify_rm_watch(fd_.get(), watch);  // fails when the kernel has dropped it with the file
}

void Inotify::wait() {
  descriptor_->async_wait(Descriptor::Interest::readable, [this](std::error_code ec) {
    if (ec) {
      // Not known to happen. Everybody looks once more; from then on there is only the fallback of polling.
      dispatch_to_all(IN_Q_OVERFLOW);
      return;
    }
    drain();
    wait();
  });
}

void Inotify::drain() {
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
    }
    // A full buffer means that there may be more; anything less was all of it.
    if (static_cast<std::size_t>(got) + sizeof(inotify_event) + NAME_MAX + 1 <= buffer.size()) return;
  }
}

void Inotify::dispatch(int watch, std::uint32_t mask, std::string_view name) {
  const auto found = listeners_.find(watch);
  if (found == listeners_.end()) return;  // an event from before the end of the subscription
  const auto listening = found->second;
  for (auto* const listener : listening) {
    if (listens(watch, listener)) listener->on_event(mask, name);
  }
}

void Inotify::dispatch_to_all(std::uint32_t mask) {
  std::vector<int> watches;
  watches.reserve(listeners_.size());
  for (const auto& entry : listeners_) watches.push_back(entry.first);
  for (const int watch : watches) dispatch(watch, mask, {});
}

bool Inotify::listens(int watch, const Listener* listener) const noexcept {
  const auto found = listeners_.find(watch);
  return found != listeners_.end() &&
         std::find(found->second.begin(), found->second.end(), listener) != found->second.end();
}

}  // namespace dlock::file
