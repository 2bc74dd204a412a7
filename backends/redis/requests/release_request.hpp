// Asks Redis to free a lock.
#pragma once

#include <array>
#include <functional>
#include <string>
#include <unordered_map>

#include <dlock/spi/releases.hpp>

#include "backends/redis/connection/servers.hpp"
#include "backends/redis/requests/answers.hpp"
#include "backends/redis/requests/keys.hpp"

namespace dlock::redis {

// Frees the lock if it is this value's, and hands it to a living waiter. If many dead ones are in the way, it asks
// several times. leave: this value leaves the queue, too. Answers at the deadline at the latest. The servers outlive
// it.
void request_release(Servers& servers, Line line, LockKind kind, std::string lock_key, std::string value, bool leave,
                     TimePoint deadline, std::function<void(Server*, Result<ReleaseAnswer>)> done);

// Frees it when the client ends, without an answer (CommandClient::last_word()). The value leaves the queue.
void release_at_the_end(Servers& servers, LockKind kind, const std::string& lock_key, const std::string& value);

// client: this client's part of its values. publish_forbidden: called when the server says that it may not tell
// waiters. The servers outlive it.
[[nodiscard]] Releases::Ask release_requests(Servers& servers, LockKind kind, std::string client,
                                             std::function<void()> publish_forbidden);

// Those of each kind of locks.
class ReleasesOfKinds {
 public:
  template <class AskOf>
  ReleasesOfKinds(Executor& executor, std::chrono::nanoseconds response_timeout, std::chrono::nanoseconds patience,
                  AskOf&& ask_of)
      : executor_(executor),
        all_{{{executor, response_timeout, patience, ask_of(LockKind::lock)},
              {executor, response_timeout, patience, ask_of(LockKind::read_write)},
              {executor, response_timeout, patience, ask_of(LockKind::semaphore)},
              {executor, response_timeout, patience, ask_of(LockKind::election)}}} {}

  [[nodiscard]] Releases& of(LockKind kind) { return all_.at(static_cast<std::size_t>(kind)); }
  // An acquire of this owner went unanswered, and may yet be carried out, even after its release.
  void in_doubt(const OwnerId& owner);
  void release(const Grant& grant, Backend::ReleaseHandler done);
  void abandon(const LockRequest& request, bool stragglers) {
    in_doubt_.erase(request.owner);
    of(request.kind).abandon(request.name, request.owner, request.lease, stragglers);
  }
  void heard_of(const OwnerId& owner) {
    for (Releases& each : all_) each.heard_of(owner);
  }
  template <class F>
  void for_each_unconfirmed(F&& f) const {
    for (std::size_t i = 0; i < all_.size(); ++i) {
      all_[i].for_each_unconfirmed(
          [&](const std::string& name, const OwnerId& owner) { f(static_cast<LockKind>(i), name, owner); });
    }
  }
  void finish(std::function<void()> done) { finish_from(0, std::move(done)); }

 private:
  void finish_from(std::size_t first, std::function<void()> done) {
    if (first == all_.size()) return done();
    all_[first].finish([this, first, done = std::move(done)] { finish_from(first + 1, done); });
  }

  Executor& executor_;
  std::array<Releases, 4> all_;
  std::unordered_map<OwnerId, TimePoint> in_doubt_;  // and until when
};

}  // namespace dlock::redis
