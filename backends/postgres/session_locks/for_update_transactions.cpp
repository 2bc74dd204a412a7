#include "backends/postgres/session_locks/for_update_transactions.hpp"

#include <algorithm>
#include <utility>

#include <dlock/duration.hpp>

namespace dlock::postgres {

// What is under way there is answered to its callers.
struct Transactions::Ending final : Session::User {
  void session_ready() override {}
  void session_down(const Failure& /*why*/, bool /*was_ready*/) override {}

  Member member;
  Ended done;
};

Transactions::Transactions(const Services& services, const Statement& rollback, std::function<void()> freed)
    : services_(services),
      rollback_(rollback),
      freed_(std::move(freed)),
      pool_(services.host.executor(), services.dialling,
            Purpose{.word = "transaction", .session_lease = services.options.lease}, services.options.max_connections),
      timer_(services.host.executor()) {}

Transactions::~Transactions() = default;

// --- Who gets one ----------------------------------------------------------------------------------------------------

std::size_t Transactions::limit() const {
  const FullServer* const full = services_.dialling.full;
  return full != nullptr && full->makes_room() ? 1 : pool_.limit();
}

Failure Transactions::exhausted() const {
  const FullServer* const full = services_.dialling.full;
  return full != nullptr && full->makes_room() ? full->why() : pool_.exhausted();
}

bool Transactions::has_one(bool patient) const {
  const FullServer* const full = services_.dialling.full;
  if (pool_.idle() > 0) return true;
  if (!patient || full == nullptr || !full->makes_room()) return pool_.size() < pool_.limit();
  return pool_.size() < limit() && services_.host.executor().now() >= full->next();
}

Transactions::Member Transactions::take(Session::User& user, bool patient) {
  if ((!applicants_.empty() && !in_turn_) || !has_one(patient)) return nullptr;
  return pool_.take(user);
}

void Transactions::wait_for_one(Applicant& applicant) {
  applicants_.push_back(&applicant);
  serve_later();
}

void Transactions::leave(Applicant& applicant) {
  (void)std::erase(applicants_, &applicant);
}

// As a task of its own, because the code that let go of a connection is in the middle of something.
void Transactions::freed() {
  if (freed_) freed_();
  if (applicants_.empty() || std::exchange(serving_posted_, true)) return;
  services_.host.executor().post(lifetime_.guard([this] { serve(); }));
}

void Transactions::serve() {
  serving_posted_ = false;
  const auto next = [this] {
    return std::find_if(applicants_.begin(), applicants_.end(),
                        [this](const Applicant* applicant) { return has_one(applicant->patient()); });
  };
  for (auto at = next(); at != applicants_.end(); at = next()) {
    Applicant& first = **at;
    applicants_.erase(at);
    in_turn_ = true;
    first.connection_free();
    in_turn_ = false;
  }
  serve_later();
}

// Nothing else tells those who are patient that it is time to connect.
void Transactions::serve_later() {
  const FullServer* const full = services_.dialling.full;
  if (applicants_.empty() || timer_.armed() || full == nullptr || !full->makes_room()) return;
  if (full->next() <= services_.host.executor().now()) return;  // and a connection that comes back tells them
  timer_.arm(full->next(), [this] { serve(); });
}

// --- How they come back ----------------------------------------------------------------------------------------------

void Transactions::end(Member member, const Statement& how, Ended done) {
  const std::uint64_t id = ++last_ending_;
  Ending& ending = *endings_.emplace(id, std::make_unique<Ending>()).first->second;
  ending.member = std::move(member);
  ending.done = std::move(done);
  ending.member->hand_over(ending);
  Query query{.commands = {{.statement = &how}},
              .done = lifetime_.guard([this, id](const Outcome& outcome, const Results&) { ended(id, outcome); })};
  const TimePoint answer_by = saturating_add(services_.host.executor().now(), services_.dialling.response_timeout);
  (void)ending.member->session().request(std::move(query), answer_by);
}

void Transactions::ended(std::uint64_t id, const Outcome& outcome) {
  const auto found = endings_.find(id);
  if (found == endings_.end()) return;
  const auto ending = std::move(found->second);
  endings_.erase(found);
  FullServer* const full = services_.dialling.full;
  if (outcome.problem == Problem::none && applicants_.empty() && full != nullptr && full->makes_room()) {
    ending->member.reset();
    full->looked();
  } else if (outcome.problem == Problem::none) {
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
