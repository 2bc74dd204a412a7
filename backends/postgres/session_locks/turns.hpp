// Who of a client's waiters waits inside the server, on a connection of its own, and who in the client.
//
// A waiter inside keeps a connection from those that may need it more: a holder that wants another lock before it
// gives the first one back. So a part of the connections stays free, the first waiter of each lock goes before the
// others of the same lock, and where not even all the first ones have a connection they take turns. A waiter outside
// is told now and then that a try may be worth it, and so gets a free lock all the same.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include <dlock/spi/executor.hpp>
#include <dlock/spi/lifetime.hpp>

namespace dlock::postgres {

// How long a wait in the server goes on before it is asked anew. While it waits, its snapshot keeps the server from
// cleaning up after all others, in all tables; but a new request goes to the end of the server's queue.
struct WaitSlices {
  std::chrono::nanoseconds shortest = std::chrono::seconds(30);
  std::chrono::nanoseconds longest = std::chrono::seconds(60);
};

// In tasks only.
class Turns {
 public:
  class Waiter {
   public:
    Waiter() = default;
    Waiter(const Waiter&) = delete;
    Waiter& operator=(const Waiter&) = delete;
    // Of one outside: it is inside now, and may take a connection and wait there.
    virtual void turn_came() = 0;
    // Of one outside: the lock may be free.
    virtual void worth_a_try() = 0;
    // Of one inside: whether it has a connection that it could give up.
    [[nodiscard]] virtual bool has_connection() const noexcept = 0;
    // Of one inside: it is outside now, and its connection is to be closed, because only that ends a wait in the
    // server.
    virtual void give_way() = 0;

   protected:
    ~Waiter() = default;
  };
  enum class Place {
    inside,
    behind_others,  // of the same lock; or a connection is about to come free
    no_room,        // for the first waiter of a lock, and none is there that would make room
  };

  // How many connections stay free.
  struct Spare {
    std::size_t by_all = 0;
    std::size_t by_others = 0;  // by those who are not the first of their lock
  };

  // free: how many of the limit are neither taken by those
  // inside nor by locks; may be negative.
  Turns(Executor& executor, std::size_t limit, Spare spare, WaitSlices slices, std::function<std::int64_t()> free);

  // A waiter that has asked for the lock in vain. Unless it is inside, turn_came() may follow.
  [[nodiscard]] Place enter(const std::string& lock, Waiter& waiter);
  // Of one inside: how long it is to wait in the server.
  [[nodiscard]] std::chrono::nanoseconds slice(Waiter& waiter);
  // Of one inside whose slice has ended. False: it is outside now, because others have waited for its connection.
  [[nodiscard]] bool stays(Waiter& waiter);
  // It waits no longer. An unknown one is ignored.
  void leave(Waiter& waiter);

  // Of all inside that the server keeps waiting: they give their connections up, and begin anew in their order.
  void end_waits();
  // Called when one is let in.
  void when_let_in(std::function<void()> told) { let_in_told_ = std::move(told); }

  // This client has let go of the lock.
  void freed(const std::string& lock);
  // There may be more connections free than there were.
  void room();
  // A request finds no connection. True: one of those inside gives its own up.
  [[nodiscard]] bool make_room();

  [[nodiscard]] bool any_outside() const noexcept { return !lines_outside_.empty(); }
  // How many wait for it in the client, of whom the server knows nothing.
  [[nodiscard]] std::size_t outside(const std::string& lock) const;
  [[nodiscard]] std::size_t inside() const noexcept { return inside_; }
  // How many of those inside have a connection.
  [[nodiscard]] std::size_t connected() const;

 private:
  // Those who wait for one lock, in the order in which they came: those inside came before those outside.
  struct Line {
    std::vector<Waiter*> inside;
    std::deque<Waiter*> outside;
  };
  struct Standing {
    std::string lock;
    bool inside = false;
    TimePoint since;  // of its slice
  };

  [[nodiscard]] Spare spare() const;
  void spare_more(std::size_t& more);
  [[nodiscard]] bool may_enter(const Line& line) const;
  [[nodiscard]] bool wants_turn() const;
  void let_in(Line& line, Waiter& waiter);
  void put_outside(Line& line, Waiter& waiter, bool in_front);
  void send_out(Waiter& waiter);
  [[nodiscard]] Waiter* dispensable() const;
  [[nodiscard]] Waiter* oldest_inside() const;
  void serve();
  [[nodiscard]] Waiter* let_next_in();
  void look_later();
  void look();

  Executor& executor_;
  const std::size_t limit_;
  const Spare spare_;
  const WaitSlices slices_;
  const std::function<std::int64_t()> free_;
  std::function<void()> let_in_told_;

  std::map<std::string, Line> lines_;
  std::unordered_map<Waiter*, Standing> standings_;
  std::list<std::string> lines_outside_;  // those with waiters outside; the one whose turn is next first
  std::string last_look_;                 // which of the locks outside was tried for last
  std::size_t inside_ = 0;
  Spare more_;  // since that has turned out to be too little, for a while
  TimePoint more_until_ = TimePoint::min();
  bool serving_posted_ = false;
  Timer timer_;
  Lifetime lifetime_;
};

}  // namespace dlock::postgres
