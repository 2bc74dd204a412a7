// std::mutex with thread-safety annotations, which clang does not see in libstdc++'s own.
#pragma once

#include <mutex>

#include "util/thread_annotations.hpp"

namespace dlock::util {

class DLOCK_CAPABILITY("mutex") Mutex {
 public:
  void lock() DLOCK_ACQUIRE() { mutex_.lock(); }
  void unlock() DLOCK_RELEASE() { mutex_.unlock(); }
  [[nodiscard]] bool try_lock() DLOCK_TRY_ACQUIRE(true) { return mutex_.try_lock(); }

 private:
  std::mutex mutex_;
};

class DLOCK_SCOPED_CAPABILITY MutexLock {
 public:
  explicit MutexLock(Mutex& mutex) DLOCK_ACQUIRE(mutex) : mutex_(mutex) { mutex_.lock(); }
  MutexLock(const MutexLock&) = delete;
  MutexLock& operator=(const MutexLock&) = delete;
  ~MutexLock() DLOCK_RELEASE() { mutex_.unlock(); }

 private:
  Mutex& mutex_;
};

}  // namespace dlock::util
