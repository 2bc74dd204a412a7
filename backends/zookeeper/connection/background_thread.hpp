// Detached threads for blocking calls of a library.
#pragma once

#include <pthread.h>
#include <signal.h>

#include <system_error>
#include <thread>
#include <utility>

namespace dlock::zookeeper {

// Joins the thread where it was told that it is finished, and else lets it run on: what it uses must be its own.
class BackgroundThread {
 public:
  BackgroundThread() = default;
  BackgroundThread(const BackgroundThread&) = delete;
  BackgroundThread& operator=(const BackgroundThread&) = delete;
  ~BackgroundThread() {
    if (thread_.joinable()) thread_.detach();
  }

  // False: the system has no thread left. At most once.
  template <class Function>
  [[nodiscard]] bool start(Function function) {
    // Signals are for the program's own threads. A thread inherits the mask of the one that makes it.
    sigset_t all;
    sigset_t before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    bool started = true;
    try {
      thread_ = std::thread(std::move(function));
    } catch (const std::system_error&) {
      started = false;
    }
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    return started;
  }
  // It has done its work and is about to end.
  void finished() {
    if (thread_.joinable()) thread_.join();
  }

 private:
  std::thread thread_;
};

}  // namespace dlock::zookeeper
