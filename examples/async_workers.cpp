// Many waits without a blocked thread: acquires with handlers, work on your own threads, notification of a loss, and
// cancelling a wait.
//
//   async_workers [URL]
//
// Handlers run on the client's engine thread. They must not block: what takes long belongs on a thread of your own.
#include <condition_variable>
#include <deque>
#include <iostream>
#include <latch>
#include <mutex>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>

#include <dlock/dlock.hpp>

using namespace std::chrono_literals;

namespace {

void say(const std::string& line) {
  static std::mutex mutex;
  const std::lock_guard lock(mutex);
  std::cout << line << '\n';
}

// A service that gets requests: each locks its order, and a thread of the service works on it. While a request waits
// for its lock, no thread waits with it. A lease may be moved from the handler to any thread.
class Service {
 public:
  explicit Service(const dlock::Client& client) : client_(client) {}

  // `answered` counts down when the request has its answer.
  void request(const std::string& order, dlock::Duration wait, std::latch& answered) {
    client_.make_lock(order).async_acquire(
        {.wait = wait}, [=, this, &answered](std::error_code ec, dlock::Lease lease) {
          if (ec) {
            say(order + (ec == dlock::errc::timed_out ? ": somebody else works on it" : ": " + ec.message()));
            answered.count_down();
            return;
          }
          const std::lock_guard guard(mutex_);
          jobs_.push_back({std::move(lease), &answered});
          changed_.notify_one();
        });
  }

 private:
  struct Job {
    dlock::Lease lease;
    std::latch* answered;
  };

  void work(const std::stop_token& stop) {
    while (true) {
      std::unique_lock guard(mutex_);
      if (!changed_.wait(guard, stop, [this] { return !jobs_.empty(); })) return;
      Job job = std::move(jobs_.front());
      jobs_.pop_front();
      guard.unlock();
      if (job.lease.held()) say(job.lease.name() + ": done");  // with job.lease.token() for what it writes to
      job.lease.async_release(
          [answered = job.answered](std::error_code, bool /*was_ours*/) { answered->count_down(); });
    }
  }

  const dlock::Client& client_;
  std::mutex mutex_;
  std::condition_variable_any changed_;
  std::deque<Job> jobs_;
  std::jthread worker_{[this](const std::stop_token& stop) { work(stop); }};
};

void serve(const dlock::Client& client) {
  const dlock::Lease elsewhere = client.make_lock("orders/3").acquire();  // another instance of the service has it
  std::latch answered(3);
  Service service(client);
  service.request("orders/1", 30s, answered);
  service.request("orders/2", 30s, answered);
  service.request("orders/3", 0s, answered);
  answered.wait();
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

// A holder is notified when its lock is no longer reliable.
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
  (void)client.break_lock(lock.name());  // as an operator would; noticed at the next renewal
  told.wait();
  say(lease.held() ? "unexpected: still held" : "and the lease knows");
}

}  // namespace

int main(int argc, char** argv) {
  const std::string url = argc > 1 ? argv[1] : "memory://";
  try {
    const dlock::Client client = dlock::connect(url);
    dlock::DistributedLock lock = client.make_lock("printer");
    serve(client);
    take_turns(lock);
    lose_patience(lock);
    lose_the_lock(client, lock);
  } catch (const dlock::Error& e) {
    std::cerr << "async_workers: " << e.what() << '\n';
    return 1;
  }
}
