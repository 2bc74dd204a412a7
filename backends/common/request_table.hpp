// The requests of one connection and their deadlines. A request waits for the connection, is sent, and is answered, in
// the order in which requests were sent. One that is not answered by its deadline is given up: its answer may still
// come and must find its place, so it stays in the table. If the oldest request is not answered within its patience,
// the connection is not worth keeping.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <limits>
#include <map>
#include <optional>
#include <vector>

#include <dlock/spi/executor.hpp>
#include <dlock/spi/lifetime.hpp>

namespace dlock::common {

// Payload: what the user keeps with a request; movable, with a member `done` that is empty once the answer is not
// wanted any more. In tasks only.
template <class Payload>
class RequestTable {
 public:
  using Id = std::uint64_t;  // never 0
  struct Entry {
    Id id = 0;
    TimePoint deadline = TimePoint::max();  // of the answer
    TimePoint sent = {};                    // once it is
    TimePoint patience = TimePoint::max();  // how long the connection is kept without an answer
    Payload payload = {};
  };

  // Any of these may destroy the table.
  class User {
   public:
    User() = default;
    User(const User&) = delete;
    User& operator=(const User&) = delete;
    // A request is overdue: read what has arrived, because this process may have been suspended.
    virtual void requests_catch_up() = 0;
    // The oldest request was not answered within its patience. Returns until when the connection is kept all the same;
    // TimePoint::max() once it is given up.
    virtual TimePoint requests_unresponsive() = 0;
    // These requests are given up: call their handlers. Those that were sent have only their ids, times and handlers.
    virtual void requests_overdue(std::vector<Entry> sent, std::vector<Entry> unsent) = 0;

   protected:
    ~User() = default;
  };

  RequestTable(Executor& executor, User& user) : executor_(executor), user_(user), timer_(executor) {}

  [[nodiscard]] Id next_id() noexcept { return ++last_id_; }
  // Adds a request that waits for the connection.
  void wait(Entry entry);
  // Adds a request that was sent just now.
  Entry& sent(Entry entry);

  [[nodiscard]] const std::map<Id, Entry>& waiting() const noexcept { return waiting_; }
  [[nodiscard]] const std::deque<Entry>& under_way() const noexcept { return sent_; }

  // Takes at most `most` of those that wait, in the order of their ids.
  [[nodiscard]] std::vector<Entry> take_waiting(std::size_t most = std::numeric_limits<std::size_t>::max());
  // Takes the oldest of those that were sent, because its answer has arrived. nullopt: none was sent.
  [[nodiscard]] std::optional<Entry> take_oldest();
  // Takes one of those that were sent. nullopt: none has that id.
  [[nodiscard]] std::optional<Entry> take(Id id);
  // Takes all that were sent, because the connection is lost.
  [[nodiscard]] std::deque<Entry> take_sent();

  // The answer is not wanted any more. True: it was not sent and never will be. An unknown id is ignored.
  bool withdraw(Id id);
  void clear();

 private:
  void arm(TimePoint at);
  void check();
  void give_up_overdue(TimePoint now);

  Executor& executor_;
  User& user_;
  Id last_id_ = 0;
  std::map<Id, Entry> waiting_;
  std::deque<Entry> sent_;  // in the order in which the answers will come
  TimePoint armed_for_ = TimePoint::max();
  Timer timer_;
  Lifetime lifetime_;
};

}  // namespace dlock::common

#include "backends/common/request_table.ipp"
