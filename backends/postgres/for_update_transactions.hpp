// The connections of strategy=for-update: one for each transaction that holds a lock or asks for one. Who finds all of
// them taken waits here for the next that is free, and transactions that nobody needs any more are ended here.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <unordered_map>

#include "backends/postgres/pool.hpp"
#include "backends/postgres/services.hpp"
#include "backends/postgres/session.hpp"
#include "backends/postgres/statements.hpp"

namespace dlock::postgres {

// In tasks only.
class Transactions final {
 public:
  using Member = std::unique_ptr<Pool::Member>;
  using Ended = std::function<void(const Outcome&)>;

  // Somebody who waits for a connection.
  class Applicant {
   public:
    Applicant() = default;
    Applicant(const Applicant&) = delete;
    Applicant& operator=(const Applicant&) = delete;
    // It waits no longer; take() has one for it, until it returns.
    virtual void connection_free() = 0;

   protected:
    ~Applicant() = default;
  };

  // The statement outlives it, and what the services refer to does.
  Transactions(const Services& services, const Statement& rollback);
  ~Transactions();

  // As Pool's. nullptr, too, where others have been waiting for one.
  [[nodiscard]] Member take(Session::User& user);
  [[nodiscard]] Failure exhausted() const { return pool_.exhausted(); }
  // First come, first served. The applicant leaves before it goes.
  void wait_for_one(Applicant& applicant);
  void leave(Applicant& applicant);

  // COMMIT or ROLLBACK, whatever is still under way there and need not be answered. The connection is of use again
  // when that succeeds; else it is closed, which ends the transaction, too. The handler is called once, never inside
  // the call, unless this is destroyed first.
  void end(Member member, const Statement& how, Ended done);
  void roll_back(Member member) { end(std::move(member), rollback_, {}); }
  // Ends the transaction as soon as the server has noticed.
  void close(Member member);

  // For the observer: what those who use connections have heard of them.
  void connected();
  void broken(const Failure& why);

 private:
  struct Ending;

  void ended(std::uint64_t id, const Outcome& outcome);
  void freed();
  void serve();

  const Services services_;
  const Statement& rollback_;
  Pool pool_;
  std::deque<Applicant*> applicants_;
  bool serving_posted_ = false;
  bool in_turn_ = false;  // who asks now has waited
  std::unordered_map<std::uint64_t, std::unique_ptr<Ending>> endings_;
  std::uint64_t last_ending_ = 0;
  bool connected_ = false;
  const std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace dlock::postgres
