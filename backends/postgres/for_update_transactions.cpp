#include "backends/postgres/for_update_transactions.hpp"

#include <algorithm>
#include <utility>

#include <dlock/duration.hpp>

namespace dlock::postgres {

// What is under way there is answered to whoever asked for it.
struct Transactions::Ending final : Session::User {
  void session_ready() override {}
  void session_down(const Failure& /*why*/, bool /*was_ready*/) override {}

  Member member;
  Ended done;
};

Transactions::Transactions(const Services& services, const Statement& rollback)
    : services_(services),
      rollback_(rollback),
      pool_(services.host.executor(), services.dialling,
            Purpose{.word = "transaction", .session_lease = services.options.lease}, services.options.max_connections) {
}

Transactions::~Transactions() = default;

// --- Who gets one ----------------------------------------------------------------------------------------------------

Transactions::Member Transactions::take(Session::User& user) {
  if (!applicants_.empty() && !in_turn_) return nullptr;
  return pool_.take(user);
}

void Transactions::wait_for_one(Applicant& applicant) {
  applicants_.push_back(&applicant);
}

void Transactions::leave(Applicant& applicant) {
  (void)std::erase(applicants_, &applicant);
}

// As a task of its own, because whoever let go of a connection is in the middle of something.
void Transactions::freed() {
  if (applicants_.empty() || std::exchange(serving_posted_, true)) return;
  services_.host.executor().post([this, alive = std::weak_ptr<bool>(alive_)] {
    if (!alive.expired()) serve();
  });
}

void Transactions::serve() {
  serving_posted_ = false;
  while (!applicants_.empty() && (pool_.idle() > 0 || pool_.size() < pool_.limit())) {
    Applicant& first = *applicants_.front();
    applicants_.pop_front();
    in_turn_ = true;
    first.connection_free();
    in_turn_ = false;
  }
}

// --- How they come back ----------------------------------------------------------------------------------------------

void Transactions::end(Member member, const Statement& how, Ended done) {
  const std::uint64_t id = ++last_ending_;
  Ending& ending = *endings_.emplace(id, std::make_unique<Ending>()).first->second;
  ending.member = std::move(member);
  ending.done = std::move(done);
  ending.member->hand_over(ending);
  Query query{.commands = {{.statement = &how}},
              .done = [this, id, alive = std::weak_ptr<bool>(alive_)](const Outcome& outcome, const Results&) {
                if (!alive.expired()) ended(id, outcome);
              }};
  const TimePoint answer_by = saturating_add(services_.host.executor().now(), services_.dialling.response_timeout);
  (void)ending.member->session().request(std::move(query), answer_by);
}

void Transactions::ended(std::uint64_t id, const Outcome& outcome) {
  const auto found = endings_.find(id);
  if (found == endings_.end()) return;
  const auto ending = std::move(found->second);
  endings_.erase(found);
  if (outcome.problem == Problem::none) {
    pool_.give_back(std::move(ending->member));
  } else {
    ending->member.reset();
  }
  freed();
  if (ending->done) ending->done(outcome);
}

void Transactions::close(Member member) {
  member.reset();
  freed();
}

// --- What the observer is told ---------------------------------------------------------------------------------------

void Transactions::connected() {
  if (std::exchange(connected_, true)) return;
  services_.host.connection({.state = ConnectionEvent::State::connected, .reason = {}});
}

void Transactions::broken(const Failure& why) {
  if (!std::exchange(connected_, false)) return;
  services_.host.connection({.state = ConnectionEvent::State::reconnecting, .reason = why});
}

}  // namespace dlock::postgres
