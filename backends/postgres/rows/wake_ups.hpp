// How waiters of the row strategies hear of a release: one connection listens, and what waiters wait for is marked, so
// that only the release of a marked lock notifies (a NOTIFY is costly: all that notify commit one after the other).
//
// A release notifies every client that listens. For the first two notifications, a waiter tries at once. Then it tries
// after a random pause, which grows with the number of releases that it was notified of without getting the lock, and
// with the time between them. So few clients try between two releases, however many compete. (An older dlock keeps a
// queue of clients in the row, and puts the first client in front of the name.)
//
// What is no plain lock may be entered by several at once, and is observed by some that do not want to enter: there,
// all are told, and look.
//
// A mark expires by itself and is renewed while there are waiters. Notifications can be lost with the connection, and
// an expiry sends none; so each waiter asks again from time to time.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>

#include <dlock/spi/lifetime.hpp>
#include <dlock/spi/try_backend.hpp>

#include "backends/common/watchers.hpp"
#include "backends/postgres/rows/row_batch.hpp"
#include "backends/postgres/sessions/commands.hpp"
#include "backends/postgres/sessions/session.hpp"

namespace dlock::postgres {

// In tasks only.
class WakeUps final : private Session::User {
 public:
  // All outlive it. deaf: called once, when it turns out that waiters cannot be woken here.
  WakeUps(Commands& commands, const Dialling& dialling, const RowCommands& statements,
          std::function<void(Failure)> deaf);
  ~WakeUps();

  // Calls changed when the lock may have become free: of those who wait for it here, for the one who has waited
  // longest; of what is no plain lock for all of them, also when the mark has come into effect. nullptr: waiters cannot
  // be woken.
  [[nodiscard]] std::unique_ptr<Watch> watch(const std::string& name, std::function<void()> changed);
  // It was given to one of those who wait here, so the others need not look.
  void taken(const std::string& name);

 private:
  // A lock that has waiters.
  struct Mark {
    explicit Mark(Executor& executor) : again(executor), look(executor) {}
    bool asked = false;  // for a mark, without an answer so far
    int missed = 0;      // times in a row that it could not be marked
    bool good = false;   // releases notify, and this client hears them
    Timer again;         // to mark it
    int releases = 0;    // that this client has heard of since it waits, or since it had the lock
    TimePoint last_release = TimePoint();
    std::chrono::nanoseconds gap{};  // between two of them, of late
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
  RowBatch batch_;  // of marks, which wait for no disk
  bool listening_ = false;
  bool given_up_ = false;
  std::optional<Session> session_;
  Timer linger_;
  Lifetime lifetime_;
};

}  // namespace dlock::postgres
