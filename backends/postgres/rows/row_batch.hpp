// What the row strategies ask of their table: one query at a time, and what is asked meanwhile goes into the next one,
// so that many locks share a statement, a round trip and a commit. (What is long is one query for each kind.)
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <dlock/backend.hpp>
#include <dlock/executor.hpp>
#include <dlock/lifetime.hpp>

#include "backends/postgres/rows/batch_window.hpp"
#include "backends/postgres/rows/row_sql.hpp"
#include "backends/postgres/sessions/commands.hpp"

namespace dlock::postgres {

// What the row of a lock that is held said. Of the table: nothing.
struct ObservedVersion {
  std::string owner = {};
  std::int64_t version = 0;
};

struct RowRequest {
  enum class Kind { release, renew, acquire };
  Kind kind = Kind::acquire;
  std::string name;
  OwnerId owner;
  TimePoint deadline;
  // Of an acquire.
  std::string holder = {};
  ObservedVersion stood_still = {};  // may be taken over
  bool may_be_held = false;          // by this very owner
  std::chrono::nanoseconds lease{};  // and of a renewal
  bool patient = false;              // as Request's: for somebody who waits
  // Of an acquire of what several may hold: how many permits of how many, and for how long it is to keep out those who
  // want fewer than all while it waits.
  std::int64_t weight = 1;
  std::int64_t permits = 1;
  std::chrono::nanoseconds mark{};
};

struct RowAnswer {
  enum class Status {
    yes,    // granted, renewed, released
    no,     // busy; lost; not the owner's
    again,  // somebody is changing the row just now; of an acquire, only of what several may hold
    failed,
  };
  Status status = Status::failed;
  Failure failure = {};  // errc::unavailable: was not carried out; errc::ambiguous: may have been
  TimePoint sent = {};   // just before the query went out
  // Of an acquire.
  FencingToken token = {};
  ObservedVersion seen = {};
  // Until the lease runs out (table); of how long it is (optimistic). Not known while the row is being changed.
  std::optional<std::chrono::nanoseconds> lease = std::nullopt;
  std::optional<std::int64_t> other_permits = std::nullopt;  // others use this number of them
};

// In tasks only.
class RowBatch {
 public:
  using Handler = std::function<void(const RowAnswer&)>;

  // What is different about the statements.
  struct Variant {
    bool optimistic = false;
    bool announces = false;  // grants, and not only releases, are told to those who listen
    bool sharing = false;    // several may hold a lock, and all that is asked of its row is one statement
  };

  // All outlive it. channel: where waiters listen.
  RowBatch(Commands& commands, RowSql& sql, Variant variant, std::string channel);
  ~RowBatch();

  // The handler is called once, never inside the call, and not much later than at the deadline.
  void ask(RowRequest request, Handler done);

 private:
  struct Item {
    RowRequest request;
    Handler done;
    std::size_t at_most;  // in one query; fewer and fewer where an error may be its fault
    std::vector<std::shared_ptr<Item>> followers = {};
  };
  using Items = std::vector<std::shared_ptr<Item>>;
  // What goes out together, by kind.
  struct Load;

  void schedule();
  void send();
  [[nodiscard]] std::shared_ptr<Load> take_load();
  [[nodiscard]] Query query_of(const std::shared_ptr<Load>& load);
  [[nodiscard]] Command releases_of(const Items& items, bool quiet) const;
  [[nodiscard]] Command renewals_of(const Items& items) const;
  [[nodiscard]] Command changes_of(const Load& load) const;
  [[nodiscard]] Command acquires_of(const Items& items, bool quiet) const;

  void answered(const std::shared_ptr<Load>& load, const Outcome& outcome, const Results& results);
  void refused(const std::shared_ptr<Load>& load, const Outcome& answered);
  void search(const std::shared_ptr<Load>& load, const Outcome& outcome);
  void ask_again_first(const Items& items);
  void read(const Items& items, const Rows& rows, TimePoint sent);
  void read_changes(const Load& load, const Rows& rows, TimePoint sent);
  [[nodiscard]] static RowAnswer answer_in(RowRequest::Kind kind, const Rows& rows, std::size_t row, TimePoint sent);
  void give(Item& item, const RowAnswer& answer);
  void arm(TimePoint at);
  void fail_overdue();

  Commands& commands_;
  RowSql& sql_;
  const Variant variant_;
  const std::string channel_;
  std::deque<std::shared_ptr<Item>> waiting_;
  std::vector<std::shared_ptr<Load>> under_way_;
  bool scheduled_ = false;
  BatchWindow window_;
  Timer window_timer_;
  TimePoint quiet_until_ = TimePoint::min();  // nobody can be notified
  TimePoint armed_for_ = TimePoint::max();
  Timer timer_;
  Lifetime lifetime_;
};

}  // namespace dlock::postgres
