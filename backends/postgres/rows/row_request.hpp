// What is asked about a row, and what the answer said.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include <dlock/spi/backend.hpp>

namespace dlock::postgres {

// What the row of a lock that is held said. Of the table: nothing.
struct ObservedVersion {
  std::string owner = {};
  std::int64_t version = 0;
};

struct RowRequest {
  enum class Kind {
    release,
    renew,
    acquire,
    mark,  // for those who wait; without an owner
  };
  Kind kind = Kind::acquire;
  std::string name;
  OwnerId owner;
  TimePoint deadline;
  // Of an acquire.
  std::string holder = {};
  ObservedVersion stood_still = {};  // may be taken over
  bool may_be_held = false;          // by this very owner
  std::chrono::nanoseconds lease{};  // and of a renewal
  bool patient = false;              // as Request's: for a waiter
  bool gave_up = false;              // of a release: the owner does not know whether it has the lock
  // Of an acquire of what several may hold: how many permits of how many, and for how long it is to keep out those who
  // want fewer than all while it waits.
  std::int64_t weight = 1;
  std::int64_t permits = 1;
  std::chrono::nanoseconds mark{};
};

struct RowAnswer {
  enum class Status {
    yes,    // granted, renewed, released, marked
    no,     // busy; lost; not the owner's; not marked, because it is free
    again,  // another client is changing the row; RowBatch asks again, except for a mark
    failed,
  };
  Status status = Status::failed;
  Failure failure = {};  // errc::unavailable: was not carried out; errc::ambiguous: may have been
  TimePoint sent = {};   // just before the query went out
  // Of an acquire.
  FencingToken token = {};
  ObservedVersion seen = {};
  // Until the lease expires (table); or how long it is (optimistic). Not known while the row is being changed.
  std::optional<std::chrono::nanoseconds> lease = std::nullopt;
  std::optional<std::int64_t> other_permits = std::nullopt;  // others use this number of them
};

}  // namespace dlock::postgres
