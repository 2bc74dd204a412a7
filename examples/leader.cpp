// Two candidates and a follower. The leader publishes its address, and the follower connects to the current leader.
// When the leader resigns, or dies, the other candidate leads.
//
//   leader [URL]
#include <condition_variable>
#include <iostream>
#include <mutex>
#include <optional>
#include <semaphore>
#include <stop_token>
#include <string>
#include <thread>

#include <dlock/dlock.hpp>

namespace {

// The leader's address, as an observer was notified; "": there is none.
class Follower {
 public:
  void see(const std::optional<dlock::Leader>& leader) {
    const std::lock_guard guard(mutex_);
    address_ = leader ? leader->value : "";
    changed_.notify_all();
  }
  void wait_for(const std::string& address) {
    std::unique_lock guard(mutex_);
    changed_.wait(guard, [&] { return address_ == address; });
    std::cout << "the follower goes to " + address + '\n';  // at once: other threads print, too
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::string address_;
};

// Does a leader's work while it leads, and campaigns again when it does not, until it is stopped.
void candidate(const std::stop_token& stop, const std::string& url, const std::string& address,
               std::counting_semaphore<>& at_work) {
  const dlock::Client client = dlock::connect(url, {.label = address});
  client.make_election("scheduler")
      .run(stop, {.value = address}, [&](const dlock::Lease& lease, const std::stop_token& over) {
        std::cout << address + " leads\n";
        at_work.release();
        while (!over.stop_requested() && lease.held()) {
          // One step of the work, with lease.token() for what it writes to: see fenced_write.cpp.
          std::this_thread::yield();
        }
      });  // when the function has returned, the next one may lead
}

}  // namespace

int main(int argc, char** argv) {
  const std::string url = argc > 1 ? argv[1] : "memory://";
  try {
    Follower follower;
    const dlock::Client client = dlock::connect(url);
    const dlock::Election election = client.make_election("scheduler");
    const dlock::Observation observation =
        election.observe([&](const std::optional<dlock::Leader>& leader) { follower.see(leader); });

    std::counting_semaphore<> at_work(0);
    std::jthread first([&](const std::stop_token& stop) { candidate(stop, url, "10.0.0.7:80", at_work); });
    follower.wait_for("10.0.0.7:80");
    at_work.acquire();
    const std::jthread second([&](const std::stop_token& stop) { candidate(stop, url, "10.0.0.8:80", at_work); });
    first.request_stop();
    follower.wait_for("10.0.0.8:80");
    at_work.acquire();
  } catch (const dlock::Error& e) {
    std::cerr << "leader: " << e.what() << '\n';
    return 1;
  }
}
