// Many waits, no thread blocked: acquiring with handlers, being told of a loss, and giving up a wait.
//
//   async_workers [URL]
//
// Handlers run on the client's engine thread. They must not block: what takes long belongs on a thread of your own.
#include <iostream>
#include <latch>
#include <mutex>
#include <stop_token>
#include <string>
#include <utility>

#include <dlock/dlock.hpp>

using namespace std::chrono_literals;

namespace {

void say(const std::string& line) {
  static std::mutex mutex;
  const std::lock_guard lock(mutex);
  std::cout << line << '\n';
}

// Three jobs wait for the same lock at the same time.
void take_turns(dlock::DistributedLock& lock) {
  std::latch finished(3);
  for (int job = 1; job <= 3; ++job) {
    lock.async_acquire({.wait = 30s}, [&finished, job](std::error_code ec, dlock::Lease lease) {
      say("job " + std::to_string(job) + (ec ? ": " + ec.message() : ": has the lock"));
      lease.async_release([&finished](std::error_code, bool /*was_ours*/) { finished.count_down(); });
    });
  }
  finished.wait();
}

// A wait ends when its stop token says so.
void lose_patience(dlock::DistributedLock& lock) {
  const dlock::Lease held = lock.acquire();
  std::latch finished(1);
  std::stop_source impatience;
  lock.async_acquire({.cancel = impatience.get_token()}, [&finished](std::error_code ec, const dlock::Lease&) {
    say(ec == dlock::errc::cancelled ? "the wait was cancelled" : "unexpected: " + ec.message());
    finished.count_down();
  });
  impatience.request_stop();
  finished.wait();
}

// Whoever holds a lock is told when it can no longer be relied on.
void lose_the_lock(const dlock::Client& client, dlock::DistributedLock& lock) {
  if (!client.capabilities().can_break) {
    say("this service never takes a lock from a holder");
    return;
  }
  dlock::Lease lease = lock.acquire({.lease = 300ms});
  std::latch told(1);
  const std::stop_callback on_loss(lease.lost(), [&told] {
    say("the lock was lost");
    told.count_down();
  });
  (void)client.break_lock(lock.name());  // an operator's doing; noticed at the next renewal
  told.wait();
  say(lease.held() ? "unexpected: still held" : "and the lease knows");
}

}  // namespace

int main(int argc, char** argv) {
  const std::string url = argc > 1 ? argv[1] : "memory://";
  try {
    const dlock::Client client = dlock::connect(url);
    dlock::DistributedLock lock = client.make_lock("printer");
    take_turns(lock);
    lose_patience(lock);
    lose_the_lock(client, lock);
  } catch (const dlock::Error& e) {
    std::cerr << "async_workers: " << e.what() << '\n';
    return 1;
  }
}
