// The tables and the user locks of a fake MariaDB server: what the statements of backends/mysql/sql say, once more in
// C++. Statements are told by their words.
//
// A statement that has to wait is executed anew once it has what it waits for, with the time of its beginning.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <dlock/spi/executor.hpp>

#include "backends/common/sql/connection.hpp"

namespace dlock::mysql {

using sql::Command;
using sql::Rows;

class FakeTables {
 public:
  // A user lock, or the lock of a row. Who waits for it gets it when it is free, in their order.
  struct Lock {
    bool of_row = false;
    int session = 0;  // that has it; 0: none
    int count = 0;    // of a user lock
    std::deque<int> waiters = {};
  };
  // The share of one of several holders.
  struct Slot {
    std::string owner = {};
    std::string holder = {};
    std::int64_t weight = 0;
    std::int64_t token = 0;
    std::int64_t expires_at = 0;
  };
  // Times are in microseconds.
  struct Data {
    bool there = false;
    std::optional<std::string> owner = {};
    std::string holder = {};
    std::int64_t token = 0;
    std::int64_t session = 0;
    std::int64_t version = 0;
    std::int64_t lease_ms = 0;
    std::int64_t when = 0;  // expires_at, changed_at
    std::int64_t permits = 0;
    std::string writer = {};
    std::int64_t marked_until = 0;
    std::map<std::int64_t, Slot> slots = {};
  };
  struct Row : Lock {
    Row() { of_row = true; }
    Data data = {};
    std::optional<Data> committed = {};  // what others see, while a transaction has changed it
  };

  // The state of a session that statements know.
  struct Session {
    explicit Session(int of_number) : number(of_number) {}
    const int number;
    std::vector<Row*> locked = {};  // by its transaction
    std::chrono::nanoseconds patience = std::chrono::seconds(1);
    std::int64_t row_count = 0;
    Lock* waits_for = nullptr;
    // The statement in progress.
    bool begun = false;
    std::int64_t began = 0;
    bool timed_out = false;

    [[nodiscard]] std::int64_t id() const { return 1000 + number; }
  };

  FakeTables(const FakeTables&) = delete;
  FakeTables& operator=(const FakeTables&) = delete;

  [[nodiscard]] Row& row(const std::string& table, const std::string& name) { return rows_[{table, name}]; }
  // The lock of GET_LOCK() that is the bell of a row, or the key of a name: "lease/x", "fence/x".
  [[nodiscard]] Lock& user_lock(const std::string& key) { return user_locks_[key]; }
  // As another client does, until it unlocks them all.
  void lock_by_others(Row& row) { row.session = foreign; }
  void unlock_by_others() {
    for (auto& [path, row] : rows_) {
      if (row.session == foreign) free(row);
    }
  }

  // Slots whose leases have not expired.
  [[nodiscard]] std::vector<std::string> owners(const std::string& table, const std::string& name) {
    std::vector<std::string> all;
    const Data& data = row(table, name).data;
    const std::int64_t expires = data.when + (is_optimistic(table) ? data.lease_ms * 1000 : 0);
    if (data.owner && expires > now()) all.push_back(*data.owner);
    for (const auto& [number, slot] : data.slots) {
      if (slot.expires_at > now()) all.push_back(slot.owner);
    }
    if (!data.writer.empty() && data.marked_until > now()) all.push_back(data.writer);
    return all;
  }

 protected:
  using nanoseconds = std::chrono::nanoseconds;
  using Params = std::vector<std::string>;

  // The outcome of a statement: rows, an error, or it waits.
  struct Step {
    Rows rows = {};
    std::string error = {};
    bool waits = false;
  };
  static constexpr const char* lock_wait_timeout = "1205";
  static constexpr const char* no_such_session = "1094";

  explicit FakeTables(Executor& executor) : executor_(executor) {}
  ~FakeTables() = default;

  // The session has now what it waited for.
  virtual void resume(int session) = 0;
  // A wait that began ends then: time_out().
  virtual void limit_wait(int session, nanoseconds patience) = 0;
  [[nodiscard]] virtual bool kill(int session) = 0;

  void time_out(Session& session) {
    session.timed_out = session.waits_for->session != session.number;
    stop_waiting(session);
  }
  void commit(Session& session) { end_transaction(session, true); }
  void roll_back(Session& session) { end_transaction(session, false); }
  void end(Session& session) {
    Lock* const got = session.waits_for;
    stop_waiting(session);
    if (got != nullptr && got->session == session.number) free(*got);
    roll_back(session);
    for (auto& [key, lock] : user_locks_) {
      if (lock.session == session.number) free(lock);
    }
  }

  [[nodiscard]] Step execute(Session& session, const Command& command) {
    if (!std::exchange(session.begun, true)) {
      session.began = now();
      session.timed_out = false;
    }
    Params params;
    for (const auto& param : command.params) params.push_back(param.value_or(""));
    const std::string& word = command.statement->word;
    const std::string table = word.substr(0, word.find('.'));
    std::string what = word.substr(word.find('.') + 1);
    const bool bell = what.ends_with("_with_bell");
    if (bell) what.resize(what.size() - std::string_view("_with_bell").size());
    const bool verbatim = command.statement->sql.find("CONVERT(") != std::string::npos;
    const bool of_key = table.starts_with("fence");
    Step step;
    if (what == "list") {
      step.rows = list(session, table, number(params.at(0)));
    } else if (what == "forgettable") {
      step = forgettable(session, table, params);
    } else if (what == "forget") {
      step = forget(session, table, params.at(0), params.at(1));
    } else if (what == "break_lock" && (of_key || table == "row_lock")) {
      step = break_session(params.at(0));
    } else if (table == "row_lock") {
      step = on_row_lock(session, what, params);
    } else if (what == "inspect") {
      const std::string key = (verbatim ? "" : table + "/") + params.at(0);
      const std::size_t waiters = user_lock(key).waiters.size();
      look(session, table, params.at(0), is_shared(table) ? std::nullopt : std::optional(waiters), step.rows);
    } else if (of_key) {
      step = on_key(session, table, what, params, verbatim);
    } else if (is_shared(table)) {
      step = on_shared(session, table, what, params);
    } else {
      step = on_lease(session, table, what, params, bell);
    }
    if (step.waits) return step;
    session.begun = false;
    session.row_count = static_cast<std::int64_t>(step.rows.affected);
    return step;
  }

 private:
  enum class Got { yes, waits, timed_out };
  static constexpr int foreign = -1;
  static constexpr std::int64_t end_of_bells = 500'000;

  [[nodiscard]] static std::int64_t number(const std::string& text) { return std::stoll(text); }
  [[nodiscard]] static bool is_optimistic(std::string_view table) { return table.starts_with("optimistic"); }
  [[nodiscard]] static bool is_shared(std::string_view table) {
    return table.ends_with("_rw") || table.ends_with("_sem");
  }
  [[nodiscard]] static Rows cell(std::optional<std::string> text) { return {.rows = {{std::move(text)}}}; }
  [[nodiscard]] static Rows affected(std::uint64_t rows, std::int64_t inserted) {
    return {.affected = rows, .inserted = static_cast<std::uint64_t>(inserted)};
  }
  // Rounded up.
  [[nodiscard]] static std::int64_t ms_until(std::int64_t then, std::int64_t now) {
    return then <= now ? 0 : (then - now + 999) / 1000;
  }
  [[nodiscard]] std::int64_t now() const {
    return std::chrono::duration_cast<std::chrono::microseconds>(executor_.now().time_since_epoch()).count();
  }
  // A real clock does not stand still from one statement to the next.
  [[nodiscard]] std::int64_t us() { return clock_ = std::max(clock_ + 1, now()); }

  // --- Locks ---

  [[nodiscard]] Got get(Session& session, Lock& lock, nanoseconds patience) {
    if (lock.session == session.number) {
      session.waits_for = nullptr;
      return Got::yes;
    }
    if (session.timed_out) return Got::timed_out;
    if (session.waits_for != nullptr) return Got::waits;
    if (lock.session == 0) {
      lock.session = session.number;
      return Got::yes;
    }
    if (patience <= nanoseconds(0)) return Got::timed_out;
    lock.waiters.push_back(session.number);
    session.waits_for = &lock;
    limit_wait(session.number, patience);
    return Got::waits;
  }
  void free(Lock& lock) {
    lock.session = lock.count = 0;
    if (lock.waiters.empty()) return;
    lock.session = lock.waiters.front();
    lock.waiters.pop_front();
    resume(lock.session);
  }
  void stop_waiting(Session& session) {
    if (Lock* const lock = std::exchange(session.waits_for, nullptr)) std::erase(lock->waiters, session.number);
  }
  void end_transaction(Session& session, bool commits) {
    for (Row* const row : std::exchange(session.locked, {})) {
      if (row->committed && !commits) row->data = std::move(*row->committed);
      row->committed.reset();
      free(*row);
    }
  }
  // nullopt: the session has locked the row, if there is one. A statement that inserts a missing row locks it.
  [[nodiscard]] std::optional<Step> locks(Session& session, Row& row, bool inserts = false) {
    return locks(session, row, inserts, session.patience);
  }
  [[nodiscard]] std::optional<Step> locks(Session& session, Row& row, bool inserts, nanoseconds patience) {
    if (!row.data.there && row.session == 0 && !inserts) return std::nullopt;
    const bool is_new = row.session != session.number || std::ranges::count(session.locked, &row) == 0;
    switch (get(session, row, patience)) {
      case Got::yes:
        if (is_new) session.locked.push_back(&row);
        return std::nullopt;
      case Got::waits:
        return Step{.waits = true};
      case Got::timed_out:
        return Step{.error = lock_wait_timeout};
    }
    return std::nullopt;
  }
  // Of a row that the session has locked.
  [[nodiscard]] static Data& change(Row& row) {
    if (!row.committed) row.committed = row.data;
    return row.data;
  }
  [[nodiscard]] static const Data& seen(const Session& session, const Row& row) {
    return row.committed && row.session != session.number ? *row.committed : row.data;
  }

  // IS_USED_LOCK(): 0 for none.
  [[nodiscard]] std::int64_t user_of(const std::string& key) {
    const int session = user_lock(key).session;
    return session == 0 ? 0 : 1000 + session;
  }
  // GET_LOCK(): '0', or it waits
  [[nodiscard]] Step get_user_lock(Session& session, const std::string& key, const std::string& at_most) {
    switch (Lock& lock = user_lock(key); get(session, lock, std::chrono::microseconds(number(at_most)))) {
      case Got::yes:
        ++lock.count;
        return {.rows = cell("1")};
      case Got::waits:
        return {.waits = true};
      case Got::timed_out:
        break;
    }
    return {.rows = cell("0")};
  }
  // RELEASE_LOCK()
  std::optional<std::string> free_user_lock(Session& session, const std::string& key) {
    Lock& lock = user_lock(key);
    if (lock.session == 0) return std::nullopt;
    if (lock.session != session.number) return "0";
    if (--lock.count == 0) free(lock);
    return "1";
  }
  // GET_LOCK(bell, 0) where the session has not got it yet.
  bool take_bell(Session& session, const std::string& bell) {
    Lock& lock = user_lock(bell);
    if (lock.session == session.number) return true;
    if (lock.session != 0) return false;
    lock = {.session = session.number, .count = 1, .waiters = {}};
    return true;
  }

  // --- Plain locks and elections ---

  [[nodiscard]] bool is_held(const std::string& table, const Data& data, std::int64_t at) const {
    return data.there && data.owner && (is_optimistic(table) || data.when > at);
  }

  [[nodiscard]] Step on_lease(Session& session, const std::string& table, const std::string& what, const Params& params,
                              bool bell) {
    if (what == "acquire") return acquire(session, table, params, bell);
    if (what == "make_row") return make_row(session, table, params.at(0));
    if (what == "renew") return renew(session, table, params, bell);
    const std::string& name = params.at(0);
    const std::string key = table + "/" + name;
    Row& row = this->row(table, name);
    if (what == "look") {
      const Data& data = seen(session, row);
      if (!data.there) return {};
      return {.rows = {.rows = {{data.owner, std::to_string(data.version)}}}};
    }
    if (what == "tidy") return {.rows = cell(ring(session, table, key, seen(session, row)) ? "1" : "0")};
    if (what == "wait") return get_user_lock(session, key, params.at(1));
    if (what == "leave") return {.rows = cell(free_user_lock(session, key))};
    EXPECT_TRUE(what == "release" || what == "break_lock") << what;
    if (auto step = locks(session, row)) return *std::move(step);
    const bool matches =
        what == "release" ? row.data.there && row.data.owner == params.at(1) : is_held(table, row.data, session.began);
    if (!matches) return {};
    Data& data = change(row);
    data.owner.reset();
    ++data.version;
    data.when = session.began;
    if (bell) data.session = 0;
    if (bell && user_of(key) == session.id()) (void)free_user_lock(session, key);
    return {.rows = affected(1, data.token)};
  }

  [[nodiscard]] bool ring(Session& session, const std::string& table, const std::string& key, const Data& data) {
    if (is_held(table, data, session.began) && data.session == session.id()) {
      return user_of(key) == 0 && take_bell(session, key);
    }
    if (user_of(key) != session.id()) return false;
    (void)free_user_lock(session, key);
    return true;
  }

  [[nodiscard]] Step acquire(Session& session, const std::string& table, const Params& params, bool bell) {
    const bool optimistic = is_optimistic(table);
    const std::string& name = params.back();
    const std::string key = table + "/" + name;
    const std::string& owner = params.at(0);
    const std::int64_t place = bell ? number(params.at(1)) : 0;
    const std::int64_t lease = number(params.at(params.size() - 4));
    Row& row = this->row(table, name);
    if (auto step = locks(session, row)) return *std::move(step);
    if (!row.data.there) return {};
    const std::int64_t began = session.began;
    const Data& is = row.data;
    const bool ours = is.owner == owner;
    const bool respects = !bell || std::abs(began - is.when) >= end_of_bells || user_of(key) == 0 ||
                          user_of(key) == session.id() || user_of(key) == place || user_of(key) == is.session;
    const bool free = optimistic ? (!is.owner && respects) || stood_still(is, params, bell)
                                 : (!is.owner || is.when <= began) && respects;
    if (!ours && !free) {
      return {.rows = affected(0, !is.owner    ? 1
                                  : optimistic ? is.lease_ms * 1000
                                               : std::max<std::int64_t>(is.when - began, 1))};
    }
    Data& data = change(row);
    if (bell && place != 0 && user_of(key) == place) {
      data.session = place;
    } else if (bell && take_bell(session, key)) {
      data.session = session.id();
    } else if (!ours) {
      data.session = 0;
    }
    if (!ours) {
      data.token = std::max(data.token + 1, us());
      data.holder = params.at(params.size() - 3);
    }
    data.owner = owner;
    ++data.version;
    data.lease_ms = lease;
    data.when = began + (optimistic ? 0 : lease);
    return {.rows = affected(1, data.token)};
  }
  [[nodiscard]] static bool stood_still(const Data& data, const Params& params, bool bell) {
    const std::size_t seen = bell ? 2 : 1;
    return data.owner == params.at(seen) && data.version == number(params.at(seen + 1));
  }
  [[nodiscard]] Step make_row(Session& session, const std::string& table, const std::string& name) {
    Row& row = this->row(table, name);
    if (auto step = locks(session, row, true)) return *std::move(step);
    if (row.data.there) return {};
    change(row) = {.there = true};
    return {.rows = affected(1, 0)};
  }

  [[nodiscard]] Step renew(Session& session, const std::string& table, const Params& params, bool bell) {
    const std::int64_t lease = number(params.at(0));
    const std::string key = table + "/" + params.at(1);
    Row& row = this->row(table, params.at(1));
    if (auto step = locks(session, row)) return *std::move(step);
    if (!is_held(table, row.data, session.began) || row.data.owner != params.at(2)) return {};
    Data& data = change(row);
    ++data.version;
    data.lease_ms = lease;
    data.when = session.began + (is_optimistic(table) ? 0 : lease);
    if (bell && user_of(key) == 0) data.session = session.id();
    return {.rows = affected(1, data.token)};
  }

  // --- Read-write locks and semaphores ---

  [[nodiscard]] static std::int64_t taken(const Data& data, std::int64_t at) {
    std::int64_t sum = 0;
    for (const auto& [number, slot] : data.slots) sum += slot.expires_at > at ? slot.weight : 0;
    return sum;
  }
  [[nodiscard]] static bool has_slot(const Data& data, const std::string& owner, std::int64_t at) {
    return std::ranges::any_of(
        data.slots, [&](const auto& item) { return item.second.owner == owner && item.second.expires_at > at; });
  }

  [[nodiscard]] Step on_shared(Session& session, const std::string& table, const std::string& what,
                               const Params& params) {
    const std::size_t names_at = what == "grant"                    ? 8
                                 : what == "enter"                  ? 4
                                 : what == "mark" || what == "look" ? 2
                                 : what == "renew"                  ? 1
                                                                    : 0;
    const std::string& name = params.at(names_at);
    Row& row = this->row(table, name);
    if (what == "forget_slots") {
      if (auto step = locks(session, row, true)) return *std::move(step);
      if (row.data.there) return {};
      return {.rows = affected(std::exchange(change(row).slots, {}).size(), 0)};
    }
    if (auto step = locks(session, row, what == "open")) return *std::move(step);
    if (what == "open") {
      const bool is_new = !std::exchange(change(row).there, true);
      return {.rows = affected(is_new ? 1 : 0, 0)};
    }
    if (what == "lock" || !row.data.there) return {};
    return change_shared(session, change(row), what, params);
  }
  [[nodiscard]] Step change_shared(const Session& session, Data& data, const std::string& what, const Params& params) {
    const std::int64_t began = session.began;
    if (what == "grant") {
      const std::string& owner = params.at(1);
      const std::int64_t weight = number(params.at(3));
      const std::int64_t permits = number(params.at(4));
      const bool may_enter = weight == permits || data.marked_until <= began;
      const bool fits = taken(data, began) <= (data.permits == permits ? permits - weight : 0);
      if (!may_enter || !fits || has_slot(data, owner, began)) return {};
      data.permits = permits;
      if (data.writer == owner) data.marked_until = 0;
      if (data.writer == owner) data.writer.clear();
      data.token = std::max(data.token + 1, us());
      return {.rows = affected(1, data.token)};
    }
    if (what == "enter") {
      if (session.row_count == 0) return {};
      const auto over = std::ranges::find_if(data.slots, [&](const auto& s) { return s.second.expires_at <= began; });
      const std::int64_t last = data.slots.empty() ? 0 : data.slots.rbegin()->first;
      data.slots[over != data.slots.end() ? over->first : last + 1] = {.owner = params.at(0),
                                                                       .holder = params.at(1),
                                                                       .weight = number(params.at(2)),
                                                                       .token = data.token,
                                                                       .expires_at = began + number(params.at(3))};
      return {.rows = affected(1, 0)};
    }
    if (what == "mark") {
      const std::int64_t time = number(params.at(0));
      const std::string& owner = params.at(1);
      const bool renews = data.writer == owner && data.marked_until < began + time * 3 / 4;
      if ((data.marked_until > began && !renews) || has_slot(data, owner, began)) return {};
      data.marked_until = began + time;
      data.writer = owner;
      return {.rows = affected(1, 0)};
    }
    if (what == "unmark") {
      if (data.writer != params.at(1)) return {};
      data.writer.clear();
      data.marked_until = 0;
      return {.rows = affected(1, 0)};
    }
    if (what == "look") return {.rows = look_at_slots(data, params, began)};
    EXPECT_TRUE(what == "renew" || what == "release" || what == "break_lock") << what;
    std::int64_t token = 0;
    for (auto& [number_of_slot, slot] : data.slots) {
      const std::string& owner = what == "break_lock" ? slot.owner : params.at(what == "renew" ? 2 : 1);
      if (slot.owner != owner || (what != "release" && slot.expires_at <= began)) continue;
      token = slot.token;
      slot.expires_at = what == "renew" ? began + number(params.at(0)) : 0;
      if (what == "renew") continue;
      slot.owner.clear();
      slot.weight = 0;
    }
    return {.rows = affected(token == 0 ? 0 : 1, token)};
  }
  [[nodiscard]] static Rows look_at_slots(const Data& data, const Params& params, std::int64_t at) {
    std::optional<std::int64_t> first;
    for (const auto& [number_of_slot, slot] : data.slots) {
      if (slot.expires_at > at) first = std::min(first.value_or(slot.expires_at), slot.expires_at);
    }
    std::int64_t until = first.value_or(data.marked_until);
    if (params.at(0) != params.at(1) && data.marked_until > at) until = std::min(until, data.marked_until);
    return {
        .rows = {{std::to_string(data.permits), std::to_string(taken(data, at)), std::to_string(ms_until(until, at))}}};
  }

  // --- Rows that transactions lock ---

  [[nodiscard]] Step on_row_lock(Session& session, const std::string& what, const Params& params) {
    const std::string& name = params.at(what == "fence" ? 1 : 0);
    Row& row = this->row("row_lock", name);
    if (what == "inspect" || what == "inspect_committed" || what == "list_committed") {
      Rows answer;
      for (const auto& [path, each] : rows_) {
        const Data& data = what == "inspect" ? each.data : seen(session, each);
        if (path.first != "row_lock" || !data.there || (what != "list_committed" && path.second != name)) continue;
        answer.rows.push_back({path.second, std::to_string(data.token)});
        if (what == "inspect") answer.rows.back() = cells_of_row_lock(path.second, data);
      }
      return {.rows = answer};
    }
    const bool inserts = what == "ensure" || what == "lock_in_transaction";
    const nanoseconds patience = what == "try_lock" ? nanoseconds(0) : session.patience;
    if (auto step = locks(session, row, inserts, patience)) return *std::move(step);
    if (what == "lock" || what == "try_lock") return {.rows = row.data.there ? cell(name) : Rows()};
    if (what == "ensure") return {.rows = affected(std::exchange(change(row).there, true) ? 0 : 1, 0)};
    if (what == "fence" && !row.data.there) return {};
    EXPECT_TRUE(what == "fence" || what == "lock_in_transaction") << what;
    return write_fence(session, row, params.at(what == "fence" ? 0 : 1));
  }
  [[nodiscard]] static Rows::Row cells_of_row_lock(const std::string& name, const Data& data) {
    const auto none = std::nullopt;
    return {name, "1", data.holder, std::to_string(data.token), none, none, std::to_string(data.session)};
  }
  [[nodiscard]] Step break_session(const std::string& id) {
    return kill(static_cast<int>(number(id)) - 1000) ? Step{} : Step{.error = no_such_session};
  }

  // --- Keys ---

  [[nodiscard]] Step on_key(Session& session, const std::string& table, const std::string& what, const Params& params,
                            bool verbatim) {
    const std::string& name = params.at(0);
    const std::string key = (verbatim ? "" : table + "/") + name;
    if (what == "get") {
      Step step = get_user_lock(session, key, params.at(1));
      if (!step.waits) step.rows.rows.front().emplace_back(std::to_string(session.id()));
      return step;
    }
    if (what == "release") return {.rows = cell(free_user_lock(session, key))};
    EXPECT_EQ(what, "fence");
    if (user_of(key) != session.id()) return {};
    Row& row = this->row(table, name);
    if (auto step = locks(session, row, true)) return *std::move(step);
    return write_fence(session, row, params.at(1));
  }
  [[nodiscard]] Step write_fence(const Session& session, Row& row, const std::string& holder) {
    Data& data = change(row);
    data.there = true;
    data.token = std::max(data.token + 1, us());
    data.holder = holder;
    data.session = session.id();
    return {.rows = affected(1, data.token)};
  }

  // --- Questions ---

  [[nodiscard]] Rows list(Session& session, const std::string& table, std::int64_t at_most) {
    Rows answer;
    for (const auto& [path, row] : rows_) {
      const bool dirty = table == "row_lock" && row.data.there;
      if (path.first != table || !(dirty || seen(session, row).there)) continue;
      if (at_most-- <= 0) break;
      if (dirty) {
        answer.rows.push_back(cells_of_row_lock(path.second, row.data));
      } else {
        look(session, table, path.second, std::nullopt, answer);
      }
    }
    return answer;
  }
  void look(Session& session, const std::string& table, const std::string& name, std::optional<std::size_t> waiters,
            Rows& answer) {
    using Cell = std::optional<std::string>;
    const std::int64_t at = session.began;
    const Data& data = seen(session, row(table, name));
    const Cell waiting = waiters ? Cell(std::to_string(*waiters)) : Cell();
    const std::string token = std::to_string(data.token);
    if (table.starts_with("fence")) {
      const std::int64_t user = user_of(table + "/" + name);
      const bool known = user != 0 && user == data.session;
      answer.rows.push_back({name, user != 0 ? "1" : "0", known ? data.holder : "",
                             user != 0 && !known && data.there ? "0" : token, Cell(), waiting,
                             user != 0 ? Cell(std::to_string(user)) : Cell()});
      return;
    }
    if (!data.there) return;
    if (!is_shared(table)) {
      const bool held = is_held(table, data, at);
      const Cell left = held && !is_optimistic(table) ? Cell(std::to_string(ms_until(data.when, at))) : Cell();
      answer.rows.push_back({name, held ? "1" : "0", held ? data.holder : "", token, left, waiting});
      return;
    }
    const std::size_t before = answer.size();
    for (const auto& [number_of_slot, slot] : data.slots) {
      if (slot.expires_at <= at) continue;
      answer.rows.push_back({name, "1", slot.holder, token, std::to_string(ms_until(slot.expires_at, at)), Cell(),
                             std::to_string(data.permits), std::to_string(slot.weight), std::to_string(slot.token)});
    }
    if (answer.size() != before) return;
    answer.rows.push_back({name, "0", "", token, Cell(), Cell(), std::to_string(data.permits), Cell(), Cell()});
  }

  [[nodiscard]] bool is_unused(const std::string& table, const std::string& name, const Data& data, std::int64_t at) {
    if (table == "row_lock") return true;
    if (table.starts_with("fence")) return user_of(table + "/" + name) == 0;
    if (is_shared(table)) return data.marked_until <= at && taken(data, at) == 0;
    return !is_held(table, data, at) && user_of(table + "/" + name) == 0;
  }
  // In Microseconds, the age that the last token must have.
  [[nodiscard]] bool is_old(const Data& data, const std::string& age) { return data.token <= us() - number(age); }
  [[nodiscard]] Step forgettable(Session& session, const std::string& table, const Params& params) {
    Rows answer;
    for (const auto& [path, row] : rows_) {
      const bool wanted =
          path.first == table && row.data.there && (params.at(0).empty() || params.at(0) == path.second);
      if (!wanted || row.session != 0 || !is_old(row.data, params.at(2))) continue;
      if (!is_unused(table, path.second, row.data, session.began)) continue;
      if (answer.size() < std::stoull(params.at(3))) answer.rows.push_back({path.second});
    }
    return {.rows = answer};
  }
  [[nodiscard]] Step forget(Session& session, const std::string& table, const std::string& name,
                            const std::string& age) {
    Row& row = this->row(table, name);
    if (auto step = locks(session, row)) return *std::move(step);
    if (!row.data.there || !is_old(row.data, age) || !is_unused(table, name, row.data, session.began)) return {};
    Data& data = change(row);
    data = {.slots = std::move(data.slots)};
    return {.rows = affected(1, 0)};
  }

  Executor& executor_;
  std::map<std::pair<std::string, std::string>, Row> rows_;  // by table and name
  std::map<std::string, Lock> user_locks_;
  std::int64_t clock_ = 0;  // the last microsecond of a token
};

}  // namespace dlock::mysql
