// A request about the row of a lock, and the answer.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include <dlock/spi/backend.hpp>

namespace dlock::sql {

// The owner and the version in the row of a held lock. strategy=table leaves both empty.
struct ObservedVersion {
  std::string owner = {};
  std::int64_t version = 0;
};

struct RowRequest {
  enum class Kind {
    release,
    renew,
    acquire,
    mark,  // for waiters; without an owner
  };
  Kind kind = Kind::acquire;
  std::string name;
  OwnerId owner;
  TimePoint deadline;
  // For an acquire:
  std::string holder = {};
  ObservedVersion stood_still = {};  // may be taken over
  bool may_be_held = false;          // by this very owner
  bool make_row = false;             // an earlier try has found none
  std::chrono::nanoseconds lease{};  // for a renewal, too
  bool patient = false;              // for a waiter, as in Request
  bool gave_up = false;              // for a release: the owner does not know whether it has the lock
  // For an acquire of a lock that several may hold: it takes `weight` of `permits`. If that is all of them, it keeps
  // smaller requests out for as long as `mark` while it waits.
  std::int64_t weight = 1;
  std::int64_t permits = 1;
  std::chrono::nanoseconds mark{};
  std::uint64_t place = 0;  // MySQL: the session that stands first in the server's queue for the lock
};

struct RowAnswer {
  enum class Status {
    yes,     // granted, renewed, released, marked
    no,      // busy; lost; not the owner's; not marked, because it is free
    again,   // another client is changing the row; RowBatch asks again, except for a mark
    no_row,  // of an acquire; RowBatch asks again, with make_row
    failed,
  };
  Status status = Status::failed;
  Failure failure = {};  // errc::unavailable: was not carried out; errc::ambiguous: may have been
  TimePoint sent = {};   // just before the query went out
  // For an acquire:
  FencingToken token = {};
  ObservedVersion seen = {};
  // strategy=table: until the lease expires; optimistic: how long it is. Unknown while a transaction changes the row.
  std::optional<std::chrono::nanoseconds> lease = std::nullopt;
  std::optional<std::int64_t> other_permits = std::nullopt;  // others use this number of them
};

}  // namespace dlock::sql
