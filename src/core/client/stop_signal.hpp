// A stop source that is made at its first use, because most leases need none. Any thread.
#pragma once

#include <optional>
#include <stop_token>

#include "util/mutex.hpp"

namespace dlock::detail {

class StopSignal {
 public:
  [[nodiscard]] std::stop_token token() {
    std::stop_token token;
    bool fired = false;
    {
      const util::MutexLock lock(mutex_);
      if (!source_) source_.emplace();
      token = source_->get_token();
      fired = fired_;
    }
    if (fired) fire();
    return token;
  }

  // Runs stop callbacks on this thread. Further calls have no effect.
  void fire() noexcept {
    std::stop_source source(std::nostopstate);
    {
      const util::MutexLock lock(mutex_);
      fired_ = true;
      if (source_) source = *source_;
    }
    source.request_stop();
  }

 private:
  util::Mutex mutex_;
  std::optional<std::stop_source> source_ DLOCK_GUARDED_BY(mutex_);
  bool fired_ DLOCK_GUARDED_BY(mutex_) = false;
};

}  // namespace dlock::detail
