// Wakes waiters of the row strategies after a release. One connection listens, and the rows of awaited locks are
// marked, so that only the release of a marked lock notifies (NOTIFY is costly: transactions that notify commit one by
// one).
//
// A release notifies every client that listens. For the first two notifications, a waiter tries at once. Then it tries
// after a random pause, which grows with the number of releases that it was notified of without getting the lock, and
// with the time between them. So few clients try between two releases, however many compete. (An older dlock keeps a
// queue of clients in the row, and puts the first client in front of the name.)
//
// Several clients may hold a lock of another kind at once, and observers only read who holds it: a release of such a
// lock wakes all waiters.
//
// A mark expires by itself and is renewed while there are waiters. A connection that breaks can lose notifications, and
// a lease that expires sends none; so each waiter tries again from time to time.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>

#include <dlock/spi/lifetime.hpp>
#include <dlock/spi/try_backend.hpp>

#include "backends/common/sql/commands.hpp"
#include "backends/common/sql/row_batch.hpp"
#include "backends/common/sql/row_waker.hpp"
#include "backends/common/sql/session.hpp"
#include "backends/common/watchers.hpp"
#include "backends/postgres/rows/row_commands.hpp"

namespace dlock::postgres {

// In tasks only.
class WakeUps final : public RowWaker, private Session::User {
 public:
  // All arguments outlive it. It calls deaf once, if it finds that it cannot wake waiters here.
  WakeUps(Commands& commands, const Dialling& dialling, const RowCommands& statements,
          std::function<void(Failure)> deaf);
  ~WakeUps() override;

  // For a plain lock, only the waiter that has waited longest is woken; for other kinds all of them, and also when the
  // mark takes effect.
  [[nodiscard]] std::unique_ptr<Watch> watch(const std::string& name, const OwnerId* waiter,
                                             std::function<void()> changed) override;
  // The others of this client need not try.
  void taken(const std::string& name, const OwnerId& owner) override;

 private:
  // A lock that has waiters.
  struct Mark {
    explicit Mark(Executor& executor) : again(executor), look(executor) {}
    bool asked = false;  // a request to mark it is under way
    int missed = 0;      // times in a row that it could not be marked
    bool good = false;   // releases notify, and this client listens
    Timer again;         // marks it again
    int releases = 0;    // notifications since this client began to wait, or since it had the lock
    TimePoint last_release = TimePoint();
    std::chrono::nanoseconds gap{};  // between two of them, averaged
    Timer look;
  };

  void tell(const std::string& name);
  void nobody_waits_for(const std::string& name);
  void connect();
  void disconnect();
  void listen();
  void give_up(const Failure& why);

  void mark(const std::string& name);
  void mark_after(const std::string& name, std::chrono::nanoseconds time);
  void marked(const std::string& name, const RowAnswer& answer);

  void session_ready() override;
  void session_down(const Failure& why, bool was_ready) override;
  void session_left() override;
  void session_notified(const std::string& channel, const std::string& payload) override;

  Commands& commands_;
  const Dialling& dialling_;
  const RowCommands& statements_;
  const std::function<void(Failure)> deaf_;

  common::Watchers watchers_;  // by the lock's name
  std::unordered_map<std::string, Mark> marks_;
  RowBatch batch_;  // marks only, which wait for no disk
  bool listening_ = false;
  bool given_up_ = false;
  std::optional<Session> session_;
  Timer linger_;
  Lifetime lifetime_;
};

}  // namespace dlock::postgres
