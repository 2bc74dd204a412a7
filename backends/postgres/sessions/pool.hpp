// Connections for locks that need one of their own, or one that may be kept waiting by the server: up to a limit, and
// made when they are taken.
//
//   auto member = pool.take(user);                 // nullptr: pool.exhausted() says why
//   member->session().request(...);
//   pool.give_back(std::move(member));             // or destroy it: that closes the connection
#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include <dlock/spi/executor.hpp>

#include "backends/postgres/sessions/session.hpp"

namespace dlock::postgres {

// In tasks only.
class Pool final {
 public:
  // One connection, which is never made again when it breaks: what was locked through it is gone.
  class Member final : private Session::User {
   public:
    Member(Pool& pool, Session::User& user);
    ~Member();
    Member(const Member&) = delete;
    Member& operator=(const Member&) = delete;

    // May be ready already when it is taken; then session_ready() is not called. Requests may be made at once.
    [[nodiscard]] Session& session() noexcept { return session_; }
    // Another user is to be told from now on.
    void hand_over(Session::User& user) noexcept { user_ = &user; }

   private:
    friend class Pool;
    void session_ready() override;
    void session_answered() override;
    void session_down(const Failure& why, bool was_ready) override;
    void session_alive(TimePoint sent) override;
    void session_ending(const Failure& why) override;

    Pool& pool_;
    Session::User* user_;  // nullptr: it is not taken
    TimePoint idle_since_;
    Session session_;
  };

  // Dialling outlives the pool. No member may outlive it.
  Pool(Executor& executor, const Dialling& dialling, Purpose purpose, std::size_t limit);
  ~Pool();

  // The user outlives the member, or hands it over. nullptr: the limit is reached.
  [[nodiscard]] std::unique_ptr<Member> take(Session::User& user);
  // What to say then.
  [[nodiscard]] Failure exhausted() const;

  // For the next who takes one, if it is of any use: connected, and nothing under way. The caller has left neither a
  // lock nor a transaction open. Not from inside a call of its session to the user.
  void give_back(std::unique_ptr<Member> member);

  [[nodiscard]] std::size_t size() const noexcept { return size_; }  // taken and idle
  [[nodiscard]] std::size_t idle() const noexcept { return idle_.size(); }
  [[nodiscard]] std::size_t limit() const noexcept { return limit_; }

 private:
  void drop(const Member& member);
  void drop_old();
  void schedule_dropping();

  Executor& executor_;
  const Dialling& dialling_;
  const Purpose purpose_;
  const std::size_t limit_;
  std::size_t size_ = 0;
  Timer timer_;
  std::vector<std::unique_ptr<Member>> idle_;  // the one that has waited longest first
};

}  // namespace dlock::postgres
