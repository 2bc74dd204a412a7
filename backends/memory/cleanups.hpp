// Makes sure that owners who gave up leave nothing behind in the store, whatever becomes of the messages.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <string>
#include <unordered_map>

#include <dlock/clock.hpp>
#include <dlock/executor.hpp>
#include <dlock/token.hpp>

#include "backends/memory/connection.hpp"
#include "util/backoff.hpp"

namespace dlock::memory {

// Releases by owner id, again and again until the store confirms it. A request of the owner that was delayed may arrive
// even after that, so each owner is remembered for one more lease and released again if something is heard of it.
// In tasks only.
class Cleanups {
 public:
  explicit Cleanups(Connection& connection) noexcept : connection_(connection) {}

  // What the owner may have in the store: a lease, which ends by itself, or also a place in the queue, which does not.
  enum class Stake { lease, place };
  void start(const std::string& name, const OwnerId& owner, std::chrono::nanoseconds lease, Stake stake);
  // The store sent something for this owner. No effect unless the owner was given up.
  void heard_of(const OwnerId& owner);
  // Calls done once nothing is left to be confirmed.
  void finish(std::function<void()> done);

 private:
  struct Entry {
    explicit Entry(Executor& executor) : timer(executor) {}
    std::string name;
    std::chrono::nanoseconds lease{};
    TimePoint moot;  // when there can be nothing left of the owner
    bool confirmed = false;
    util::Backoff backoff{std::chrono::seconds(1)};
    Timer timer;
  };

  void release(const OwnerId& owner);
  void confirmed(const OwnerId& owner);
  void failed(const OwnerId& owner);
  void forget(const OwnerId& owner);
  void report_if_finished();

  Connection& connection_;
  std::unordered_map<OwnerId, Entry> entries_;
  std::size_t unconfirmed_ = 0;
  std::function<void()> finished_;
};

}  // namespace dlock::memory
