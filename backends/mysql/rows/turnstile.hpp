// Wakes the waiters of locks in rows, in the order of their clients. The session that got a lock has its bell too, a
// lock of GET_LOCK(). For each lock that has waiters here, a session of this client stands in the server's queue for
// the bell. When the holder gives the bell back, the first session of the queue gets it, and the first waiter of its
// client tries; the bell stays with that session until the lock is released, or nobody waits any more.
//
//   a place | its session                  | ends with
//   --------+------------------------------+----------------------------------------------------------------------
//   free    | nothing, for some seconds    | a lock that has waiters and no place; closed
//   queued  | connects, or waits           | the bell: first; nobody waits: closed, which ends a wait in the server
//   first   | has the bell                 | its waiter got the lock: kept; nobody waits: leaving
//   kept    | has the bell of a held lock  | that lock is released or lost: leaving
//   leaving | gives the bell back          | free
//
// There are at most max_connections places. Waiters of a lock without a place, and those behind a pooler, poll.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include <dlock/spi/backoff.hpp>
#include <dlock/spi/lifetime.hpp>

#include "backends/common/sql/row_waker.hpp"
#include "backends/common/sql/services.hpp"
#include "backends/common/watchers.hpp"
#include "backends/mysql/sql/row_commands.hpp"

namespace dlock::mysql {

// In tasks only.
class Turnstile final : public sql::RowWaker {
 public:
  // All outlive it.
  Turnstile(const sql::Services& services, const RowCommands& rows, std::size_t max_places);
  ~Turnstile() override;

  [[nodiscard]] std::unique_ptr<Watch> watch(const std::string& name, const OwnerId* waiter,
                                             std::function<void()> changed) override;
  void trying(sql::RowRequest& acquire) override;
  void taken(const std::string& name, const OwnerId& owner) override;
  void left(const OwnerId& owner) override;

 private:
  class Place;
  class Waiter;
  using PlacePtr = std::unique_ptr<Place>;

  [[nodiscard]] bool has_bells();
  void queue_up(const std::string& name);
  void became_first(const std::string& name);
  void place_is_left();
  void is_over(Place& place);
  void nobody_waits_for(const std::string& name);
  void leave(PlacePtr place);
  void close(PlacePtr place);

  const sql::Services services_;
  const RowCommands& rows_;
  const std::size_t max_places_;
  common::Watchers watchers_;
  std::unordered_map<std::string, PlacePtr> places_;  // queued and first, by the name of the lock
  std::unordered_map<OwnerId, PlacePtr> kept_;
  std::vector<PlacePtr> free_;  // and leaving
  std::vector<PlacePtr> over_;  // may be on the call stack
  std::unordered_map<OwnerId, std::string> waiters_;
  std::set<std::string> without_place_;
  Backoff backoff_{std::chrono::seconds(1)};
  Timer again_;
  bool warned_ = false;
  Lifetime lifetime_;
};

}  // namespace dlock::mysql
