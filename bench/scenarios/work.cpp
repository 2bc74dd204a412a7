#include "bench/scenarios/work.hpp"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdint>
#include <stdexcept>
#include <thread>
#include <utility>

#include "bench/measure/random.hpp"
#include "bench/scenarios/relay.hpp"

namespace dlock::bench {

namespace {

// The interval at which the writer counts the reads.
constexpr std::chrono::microseconds next_count{100};
constexpr std::chrono::duration<double> mean_hold = std::chrono::milliseconds(1);
constexpr double skew = 1;  // of the Zipf distribution

template <class Acquire>
Crowd::Work pairs(const Acquire& acquire, const std::stop_token& stop) {
  Crowd::Work work = [acquire](const std::stop_token& cancel) {
    const auto start = Clock::now();
    Lease lease = acquire(cancel);
    release(lease);
    return Clock::now() - start;
  };
  (void)work(stop);
  return work;
}

class Contenders final : public Crowd {
 public:
  Contenders(std::size_t size, const std::shared_ptr<Relay>& relay, MakeWork make)
      : Crowd(size, std::move(make)), relay_(relay) {}

 private:
  [[nodiscard]] Window take() override {
    Window window = Crowd::take();
    window.longest_wait = relay_->take_longest_wait(Clock::now());
    return window;
  }

  std::shared_ptr<Relay> relay_;
};

}  // namespace

std::string lock_name(const std::string& what, std::size_t number) {
  return lock_names + what + "/" + std::to_string(number);
}

void release(Lease& lease) {
  if (!lease.release()) throw std::runtime_error("lock \"" + lease.name() + "\" was lost while it was held");
}

std::chrono::milliseconds granted_lease(const Client& client, const std::string& name, const AcquireOptions& options) {
  std::chrono::duration<double> safe{0};
  DistributedLock lock = client.make_lock(name);
  for (int i = 0; i < 3; ++i) {
    Lease lease = lock.acquire(options);
    const TimePoint now = boottime_clock()->now();
    const TimePoint until = lease.valid_until();
    release(lease);
    if (until == TimePoint::max()) return std::chrono::milliseconds(0);
    safe = std::max<std::chrono::duration<double>>(safe, until - now);
  }
  // A lease is safe for a hundredth less than granted. The rest of the difference is the time of the request.
  return std::chrono::milliseconds(std::llround(std::ceil(safe.count() / 0.99 * 10)) * 100);
}

Clients connect_clients(const Target& target, std::size_t locks, std::size_t clients) {
  auto connected = std::make_shared<std::vector<Client>>();
  for (std::size_t i = 0; i < clients; ++i) connected->push_back(target.connect((locks + clients - 1) / clients));
  return connected;
}

Crowd::MakeWork spread(Clients clients, WorkOnClient work) {
  return [clients = std::move(clients), work = std::move(work)](std::size_t caller, const std::stop_token& stop) {
    return work((*clients)[caller % clients->size()], caller, stop);
  };
}

Crowd::Work own_lock(const Client& client, std::size_t caller, const std::stop_token& stop) {
  const auto lock = std::make_shared<DistributedLock>(client.make_lock(lock_name("dlock", caller)));
  return pairs([lock](const std::stop_token& cancel) { return lock->acquire({.cancel = cancel}); }, stop);
}

Crowd::Work floor_pairs(std::shared_ptr<Floor> floor) {
  Crowd::Work work = [floor = std::move(floor)](const std::stop_token&) {
    const auto start = Clock::now();
    floor->acquire();
    floor->release();
    return Clock::now() - start;
  };
  (void)work({});
  return work;
}

// Whether a call reads is random, but the same in each run.
WorkOnClient readers_and_writers(int percent) {
  return [percent](const Client& client, std::size_t caller, const std::stop_token& stop) {
    const auto lock = std::make_shared<ReadWriteLock>(client.make_read_write_lock(lock_name("read-write")));
    const auto random = std::make_shared<Random>(caller);
    return pairs(
        [lock, random, percent](const std::stop_token& cancel) {
          const bool reads = uniform(*random) * 100 < percent;
          return reads ? lock->acquire_shared({.cancel = cancel}) : lock->acquire({.cancel = cancel});
        },
        stop);
  };
}

WorkOnClient permits(std::uint32_t count) {
  return [count](const Client& client, std::size_t /*caller*/, const std::stop_token& stop) {
    const auto semaphore = std::make_shared<Semaphore>(client.make_semaphore(lock_name("permits"), count));
    return pairs([semaphore](const std::stop_token& cancel) { return semaphore->acquire({.cancel = cancel}); }, stop);
  };
}

// The writer acquires once there were as many reads since its last turn as there are readers: just after its turn,
// readers that wake up are not yet there.
WorkOnClient writer_among(std::size_t readers) {
  const auto reads = std::make_shared<std::atomic<std::uint64_t>>(0);
  return [reads, readers](const Client& client, std::size_t caller, const std::stop_token&) -> Crowd::Work {
    const auto lock = std::make_shared<ReadWriteLock>(client.make_read_write_lock(lock_name("writer")));
    if (caller > 0) {
      return [lock, reads](const std::stop_token& stop) -> std::optional<Clock::duration> {
        Lease lease = lock->acquire_shared({.cancel = stop});
        release(lease);
        ++*reads;
        return std::nullopt;
      };
    }
    return [lock, reads, readers](const std::stop_token& stop) {
      const std::uint64_t enough = *reads + readers;
      while (*reads < enough && !stop.stop_requested()) std::this_thread::sleep_for(next_count);
      const auto start = Clock::now();
      Lease lease = lock->acquire({.cancel = stop});
      const Clock::duration waited = Clock::now() - start;
      release(lease);
      return waited;
    };
  };
}

WorkOnClient many_names(std::size_t names) {
  const auto zipf = std::make_shared<const Zipf>(names, skew);
  return [zipf](const Client& client, std::size_t caller, const std::stop_token&) -> Crowd::Work {
    const auto random = std::make_shared<Random>(caller);
    return [&client, zipf, random](const std::stop_token& stop) {
      DistributedLock lock = client.make_lock(lock_name("name", (*zipf)(*random)));
      const auto start = Clock::now();
      Lease lease = lock.acquire({.cancel = stop});
      const Clock::duration waited = Clock::now() - start;
      std::this_thread::sleep_for(std::chrono::duration<double>(exponential(*random, mean_hold.count())));
      release(lease);
      return waited;
    };
  };
}

// Contenders are threads, not asynchronous acquires: the next holder runs when its thread has woken up, which is part
// of the wait of a program that calls acquire(), and a thread can simply sleep while it holds the lock. The threads do
// not disturb each other, since all but one or two of them sleep.
std::shared_ptr<Crowd> contenders(Clients clients, std::size_t count) {
  const auto relay = std::make_shared<Relay>(count);
  const auto work = [relay](const Client& client, std::size_t caller, const std::stop_token&) -> Crowd::Work {
    const auto lock = std::make_shared<DistributedLock>(client.make_lock(lock_name("contended")));
    return [relay, lock, caller](const std::stop_token& stop) {
      relay->ask(caller, Clock::now());
      Lease lease = lock->acquire({.cancel = stop});
      const auto handed_over_in = relay->take(caller, Clock::now());
      std::this_thread::sleep_for(contended_hold);
      const std::uint64_t turn = relay->let_go(Clock::now());
      release(lease);
      relay->await_successor(turn, stop);
      return handed_over_in;
    };
  };
  return std::make_shared<Contenders>(count, relay, spread(std::move(clients), work));
}

}  // namespace dlock::bench
