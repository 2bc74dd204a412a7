// How waiters of the row strategies hear of a release: one connection listens, and what waiters wait for is marked, so
// that only the release of a marked lock notifies (a NOTIFY is costly: all that notify commit one after the other).
//
// A row knows in which order clients have marked it, and a release names the first one, which looks at once; the others
// look a few milliseconds later, unless they hear of the next release by then. That is a matter of courtesy: the first
// client that finds a lock free takes it.
//
// What is no plain lock may be entered by several at once, and is observed by some that do not want to enter: there,
// all are told, and look.
//
// A mark expires by itself and is renewed while there are waiters. Notifications can be lost with the connection, and
// an expiry sends none; so each waiter asks again from time to time.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include <dlock/spi/lifetime.hpp>
#include <dlock/spi/try_backend.hpp>

#include "backends/common/watchers.hpp"
#include "backends/postgres/rows/row_sql.hpp"
#include "backends/postgres/sessions/commands.hpp"
#include "backends/postgres/sessions/session.hpp"

namespace dlock::postgres {

// In tasks only.
class WakeUps final : private Session::User {
 public:
  // All outlive it. deaf: called once, when it turns out that waiters cannot be woken here.
  WakeUps(Commands& commands, const Dialling& dialling, RowSql& sql, LockKind kind, std::string channel,
          std::function<void(Failure)> deaf);
  ~WakeUps();

  // Calls changed when the lock may have become free: of those who wait for it here, for the one who has waited
  // longest; of what is no plain lock for all of them, also when the mark has come into effect. nullptr: waiters cannot
  // be woken.
  [[nodiscard]] std::unique_ptr<Watch> watch(const std::string& name, std::function<void()> changed);
  // It was given to one of those who wait here, so the others need not look.
  void taken(const std::string& name) { watchers_.taken(name); }

 private:
  using Due = std::multimap<TimePoint, std::string>;
  // When the lock that has waiters is to be marked.
  struct Mark {
    int missed = 0;       // times in a row that it could not be marked
    bool queues = false;  // this client stands in the queue, as far as it knows
    bool good = false;    // releases notify, and this client hears them
    std::optional<Due::iterator> due;
    std::optional<Due::iterator> look = std::nullopt;  // when to look, although another client was to look first
    TimePoint named_others_since = {};                 // while there is such a look
  };

  void tell(const std::string& name);
  void nobody_waits_for(const std::string& name);
  void connect();
  void disconnect();
  void listen();
  void give_up(const Failure& why);

  void look_late(const std::string& name);
  void cancel_late_look(const std::string& name);
  void look_where_it_is_late();
  void mark_at(const std::string& name, TimePoint at);
  void leave_queue(const std::string& name);
  void mark_all_now();
  void arm();
  void mark();
  void marked(const std::vector<std::string>& names, bool with_queue, const Outcome& outcome, const Results& results);

  void session_ready() override;
  void session_down(const Failure& why, bool was_ready) override;
  void session_left() override;
  void session_notified(const std::string& channel, const std::string& payload) override;

  Commands& commands_;
  const Dialling& dialling_;
  RowSql& sql_;
  const LockKind space_;
  const std::string channel_;
  const std::function<void(Failure)> deaf_;

  common::Watchers watchers_;  // by the lock's name
  std::unordered_map<std::string, Mark> marks_;
  Due due_;
  const std::string id_;
  Due late_;
  Timer late_timer_;
  bool marking_ = false;
  Timer timer_;
  bool listening_ = false;
  bool given_up_ = false;
  std::optional<Session> session_;
  Timer linger_;
  Lifetime lifetime_;
};

}  // namespace dlock::postgres
