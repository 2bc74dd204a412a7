// Histories that read like what happened:
//
//   History h;
//   h.process(1).asks("a").is_granted(1).looks(true);
//   h.after(100ms).process(2).asks("a", 5s);
//   EXPECT_EQ(broken(h), Broken{Rule::deadlines});
//
// Each event comes a millisecond after the one before, unless it is said to be at once or later.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <map>
#include <ostream>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "torture/checker/checker.hpp"

namespace dlock::torture {

using std::chrono::nanoseconds;
using namespace std::chrono_literals;  // NOLINT(google-build-using-namespace): of tests

class History {
 public:
  // What a process does, to the lock that it asked for last.
  class Teller {
   public:
    Teller(History& history, int process) : history_(history), process_(process) {}

    // Another acquire; its number is one more than that of the one before.
    Teller& asks(const std::string& lock, nanoseconds wait) { return asks_until(lock, history_.next() + wait); }
    Teller& asks(const std::string& lock) { return asks_until(lock, TimePoint::max()); }
    Teller& asks(const Event& lock) { return asks_until(lock, TimePoint::max()); }
    Teller& asks(const Event& lock, nanoseconds wait) { return asks_until(lock, history_.next() + wait); }
    Teller& is_granted(std::uint64_t token, nanoseconds valid = 10s) {
      return note({.kind = Kind::granted, .token = FencingToken(token), .until = history_.next() + valid});
    }
    Teller& is_granted_for_good(std::uint64_t token) {
      return note({.kind = Kind::granted, .token = FencingToken(token), .until = TimePoint::max()});
    }
    Teller& cancels() { return note({.kind = Kind::cancelled}); }
    Teller& is_denied(const std::string& why) { return note({.kind = Kind::denied, .word = why}); }
    Teller& looks(bool held) { return note({.kind = Kind::looked, .yes = held}); }
    Teller& is_told_of_loss() { return note({.kind = Kind::lost}); }
    Teller& releases() { return note({.kind = Kind::releasing}); }
    Teller& has_released(bool ours = true) { return note({.kind = Kind::released, .yes = ours}); }
    Teller& could_not_release() { return note({.kind = Kind::unreleased, .word = "unavailable"}); }
    Teller& ends() {
      history_.note({.kind = Kind::ended, .process = process_});
      return *this;
    }
    // Speaks of its acquire of this number from now on.
    Teller& of_acquire(std::uint64_t number) {
      attempt_ = number;
      return *this;
    }

    // Let so much time go by, or none, before the next event.
    Teller& after(nanoseconds time) {
      history_.after(time);
      return *this;
    }
    Teller& at_once() { return after(0ns); }

   private:
    Teller& asks_until(const std::string& lock, TimePoint until) { return asks_until(Event{.lock = lock}, until); }
    Teller& asks_until(const Event& lock, TimePoint until) {
      attempt_ = ++asked_;
      lock_ = lock;
      return note({.kind = Kind::asked, .permits = lock.permits, .until = until});
    }
    Teller& note(Event event) {
      event.process = process_;
      event.attempt = attempt_;
      event.lock = lock_.lock;
      event.lock_kind = lock_.lock_kind;
      event.mode = lock_.mode;
      history_.note(std::move(event));
      return *this;
    }

    History& history_;
    int process_;
    std::uint64_t asked_ = 0;
    std::uint64_t attempt_ = 0;
    Event lock_;  // and how it was asked for
  };

  Teller& process(int number) { return tellers_.try_emplace(number, *this, number).first->second; }

  History& after(nanoseconds time) {
    next_ = last_ + time;
    return *this;
  }
  History& at_once() { return after(0ns); }

  History& stops(int process) { return note({.kind = Kind::stopped, .subject = process}); }
  History& resumes(int process) { return note({.kind = Kind::resumed, .subject = process}); }
  History& kills(int process) { return note({.kind = Kind::killed, .subject = process}); }
  History& crashes(int process) { return note({.kind = Kind::crashed, .subject = process, .word = "status 134"}); }
  History& strikes(const std::string& fault) { return note({.kind = Kind::struck, .word = fault}); }
  // That takes some time, and nothing happens meanwhile.
  History& strikes(const std::string& fault, nanoseconds length) {
    note({.kind = Kind::struck, .until = next_ + length, .word = fault});
    return after(length);
  }
  History& heals(const std::string& fault = std::string(everything)) {
    return note({.kind = Kind::healed, .word = fault});
  }
  History& serves(const std::string& lock, std::uint64_t token, bool taken) {
    return note({.kind = Kind::served, .lock = lock, .token = FencingToken(token), .yes = taken});
  }
  History& serves(Event access, std::uint64_t token, bool taken) {
    access.kind = Kind::served;
    access.token = FencingToken(token);
    access.yes = taken;
    return note(std::move(access));
  }
  History& probes(const std::string& lock, bool got) {
    return note({.kind = Kind::probed, .lock = lock, .yes = got, .word = got ? "" : "timed out"});
  }
  History& leaves(const std::string& residue) { return note({.kind = Kind::residue, .word = residue}); }

  History& note(Event event) {
    event.at = last_ = next_;
    next_ = last_ + 1ms;
    events_.push_back(std::move(event));
    return *this;
  }
  [[nodiscard]] TimePoint next() const { return next_; }
  [[nodiscard]] const std::vector<Event>& events() const { return events_; }

 private:
  std::vector<Event> events_;
  std::map<int, Teller> tellers_;
  TimePoint last_{};
  TimePoint next_{1h};
};

// Long enough after the healing for times to be sound.
inline History sound_times() {
  History h;
  h.heals().after(1min);
  return h;
}

// What is asked for of locks that several may hold; all of one name.
inline const Event to_read{.lock = "a", .lock_kind = LockKind::read_write, .mode = Mode::shared};
inline const Event to_write{.lock = "a", .lock_kind = LockKind::read_write};
inline Event one_of(std::uint32_t permits) {
  return {.lock = "a", .lock_kind = LockKind::semaphore, .permits = permits};
}

// The rules that a history breaks.
using Broken = std::set<Rule>;
inline const Broken nothing;

inline Broken broken(const History& history, const Rules& rules = {}) {
  Broken all;
  for (const auto& [rule, times] : check(history.events(), rules).found) all.insert(rule);
  return all;
}

// What the violations say, one a line.
inline std::string words(const History& history, const Rules& rules = {}) {
  std::string all;
  for (const Violation& v : check(history.events(), rules).violations) all += v.what + "\n";
  return all;
}

}  // namespace dlock::torture

namespace dlock::torture {

// For GoogleTest.
inline void PrintTo(Rule rule, std::ostream* out) {
  *out << name_of(rule);
}

}  // namespace dlock::torture
