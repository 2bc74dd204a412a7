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

int Inotify::start(Executor& executor) {
  if (descriptor_) return 0;
  fd_ = GuardedFd::open([] { return ::inotify_init1(IN_NONBLOCK | IN_CLOEXEC); });
  if (!fd_) return errno;
  try {
    descriptor_ = executor.watch(fd_.get());
  } catch (const Error&) {  // the executor has no room for it
    fd_.reset();
    return ENOMEM;
  }
  reader_ = &executor;
  wait();
  return 0;
}

int Inotify::subscribe(Executor& executor, int fd, std::uint32_t mask, Listener& listener, Subscription& subscription) {
  // By way of the descriptor, so that it is this file whatever its path leads to by now.
  const std::string path = "/proc/self/fd/" + std::to_string(fd);
  Subscription fresh;
  {
    // Watches are made and ended under the mutex: the kernel has one for each file, for all callers together.
    const util::MutexLock lock(mutex_);
    if (const int error = start(executor); error != 0) return error;
    const int watch = ::inotify_add_watch(fd_.get(), path.c_str(), mask);
    if (watch < 0) return errno;
    listeners_[watch].push_back({&listener, &executor});
    fresh = Subscription(*this, watch, listener);
  }
  subscription = std::move(fresh);
  return 0;
}

void Inotify::unsubscribe(int watch, const Listener& listener) noexcept {
  const util::MutexLock lock(mutex_);
  const auto found = listeners_.find(watch);
  if (found == listeners_.end()) return;
  auto& listening = found->second;
  const auto at =
      std::find_if(listening.begin(), listening.end(), [&](const Listening& l) { return l.listener == &listener; });
  if (at != listening.end()) listening.erase(at);
  if (!listening.empty()) return;
  listeners_.erase(found);
  (void)::inotify_rm_watch(fd_.get(), watch);  // fails when the kernel has dropped it with the file
}

void Inotify::wait() {
  // The last user may let go in a task of another executor, at any moment.
  descriptor_->async_wait(Descriptor::Interest::readable, [weak = weak_from_this()](std::error_code ec) {
    const auto self = weak.lock();
    if (!self) return;
    if (ec) {
      // Not known to happen. Everybody looks once more; from then on there is only the fallback of polling.
      self->dispatch_to_all(IN_Q_OVERFLOW);
      return;
    }
    self->drain();
    self->wait();
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
  std::vector<Listening> all;
  {
    const util::MutexLock lock(mutex_);
    const auto found = listeners_.find(watch);
    if (found == listeners_.end()) return;  // an event from before the end of the subscription
    all = found->second;
  }
  for (const Listening& listening : all) {
    if (listening.executor != reader_) {
      listening.executor->post([weak = weak_from_this(), watch, listening, mask, entry = std::string(name)] {
        const auto self = weak.lock();
        if (self && self->listens(watch, listening)) listening.listener->on_event(mask, entry);
      });
    } else if (listens(watch, listening)) {
      listening.listener->on_event(mask, name);
    }
  }
}

void Inotify::dispatch_to_all(std::uint32_t mask) {
  std::vector<int> watches;
  {
    const util::MutexLock lock(mutex_);
    watches.reserve(listeners_.size());
    for (const auto& entry : listeners_) watches.push_back(entry.first);
  }
  for (const int watch : watches) dispatch(watch, mask, {});
}

bool Inotify::listens(int watch, const Listening& listening) {
  const util::MutexLock lock(mutex_);
  const auto found = listeners_.find(watch);
  return found != listeners_.end() &&
         std::find(found->second.begin(), found->second.end(), listening) != found->second.end();
}

}  // namespace dlock::file
