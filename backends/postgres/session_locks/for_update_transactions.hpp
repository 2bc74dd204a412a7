// The connections of strategy=for-update: one for each transaction that holds a lock or asks for one. A request that
// finds all of them taken waits here for the next that is free, and transactions that are no longer needed are ended
// here.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <unordered_map>

#include <dlock/spi/lifetime.hpp>

#include "backends/postgres/services.hpp"
#include "backends/postgres/sessions/pool.hpp"
#include "backends/postgres/sessions/session.hpp"
#include "backends/postgres/sql/statements.hpp"

namespace dlock::postgres {

// In tasks only.
class Transactions final {
 public:
  using Member = std::unique_ptr<Pool::Member>;
  using Ended = std::function<void(const Outcome&)>;

  // A request that waits for a connection.
  class Applicant {
   public:
    Applicant() = default;
    Applicant(const Applicant&) = delete;
    Applicant& operator=(const Applicant&) = delete;
    // It waits no longer; take() has one for it, until it returns.
    virtual void connection_free() = 0;
    [[nodiscard]] virtual bool patient() const noexcept = 0;

   protected:
    ~Applicant() = default;
  };

  // The statement outlives it, and what the services refer to does. freed: called when a connection may be free again.
  Transactions(const Services& services, const Statement& rollback, std::function<void()> freed);
  ~Transactions();

  // As Pool's. nullptr, too, where others have been waiting for one; and for a patient request where a client that
  // makes room at a full server would have to open one more.
  [[nodiscard]] Member take(Session::User& user, bool patient);
  [[nodiscard]] Failure exhausted() const;
  // How many there may be just now.
  [[nodiscard]] std::size_t limit() const;
  [[nodiscard]] std::size_t size() const noexcept { return pool_.size(); }
  [[nodiscard]] std::size_t applicants() const noexcept { return applicants_.size(); }
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

  // For the observer: what the users of connections have reported.
  void connected();
  void broken(const Failure& why);

 private:
  struct Ending;

  void ended(std::uint64_t id, const Outcome& outcome);
  void freed();
  void serve();
  void serve_later();
  [[nodiscard]] bool has_one(bool patient) const;

  const Services services_;
  const Statement& rollback_;
  const std::function<void()> freed_;
  Pool pool_;
  std::deque<Applicant*> applicants_;
  bool serving_posted_ = false;
  Timer timer_;           // of a client that keeps away from a full server
  bool in_turn_ = false;  // who asks now has waited
  std::unordered_map<std::uint64_t, std::unique_ptr<Ending>> endings_;
  std::uint64_t last_ending_ = 0;
  bool connected_ = false;
  Lifetime lifetime_;
};

}  // namespace dlock::postgres
