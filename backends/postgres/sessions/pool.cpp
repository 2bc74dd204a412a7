#include "backends/postgres/sessions/pool.hpp"

#include <algorithm>
#include <utility>

#include <dlock/duration.hpp>

namespace dlock::postgres {

namespace {

// A connection costs the server a process.
constexpr std::chrono::nanoseconds longest_idle = std::chrono::seconds(10);

}  // namespace

// --- Member ----------------------------------------------------------------------------------------------------------

Pool::Member::Member(Pool& pool, Session::User& user)
    : pool_(pool), user_(&user), session_(pool.executor_, pool.dialling_, pool.purpose_, Upkeep::once, *this) {
  ++pool_.size_;
}

Pool::Member::~Member() {
  --pool_.size_;
}

void Pool::Member::session_ready() {
  if (user_ != nullptr) user_->session_ready();
}

void Pool::Member::session_down(const Failure& why, bool was_ready) {
  if (user_ == nullptr) return pool_.drop(*this);
  user_->session_down(why, was_ready);
}

void Pool::Member::session_answered() {
  if (user_ != nullptr) user_->session_answered();
}

void Pool::Member::session_alive(TimePoint sent) {
  if (user_ != nullptr) user_->session_alive(sent);
}

void Pool::Member::session_ending(const Failure& why) {
  if (user_ != nullptr) user_->session_ending(why);
}

// --- Pool ------------------------------------------------------------------------------------------------------------

Pool::Pool(Executor& executor, const Dialling& dialling, Purpose purpose, std::size_t limit)
    : executor_(executor), dialling_(dialling), purpose_(std::move(purpose)), limit_(limit), timer_(executor) {}

Pool::~Pool() = default;

std::unique_ptr<Pool::Member> Pool::take(Session::User& user) {
  if (!idle_.empty()) {
    // The one that was used last: so the others become old and go.
    auto member = std::move(idle_.back());
    idle_.pop_back();
    member->user_ = &user;
    return member;
  }
  if (size_ >= limit_) return nullptr;
  auto member = std::make_unique<Member>(*this, user);
  member->session_.want();
  return member;
}

Failure Pool::exhausted() const {
  return {errc::unavailable, "max_connections=" + std::to_string(limit_) +
                                 ": every connection holds a lock or waits for one; raise max_connections in the URL"};
}

void Pool::give_back(std::unique_ptr<Member> member) {
  if (!member->session_.ready() || !member->session_.idle()) return;  // and closes it
  member->user_ = nullptr;
  member->idle_since_ = executor_.now();
  idle_.push_back(std::move(member));
  if (!timer_.armed()) schedule_dropping();
}

void Pool::drop(const Member& member) {
  (void)std::erase_if(idle_, [&](const auto& each) { return each.get() == &member; });
}

void Pool::schedule_dropping() {
  timer_.arm(saturating_add(idle_.front()->idle_since_, longest_idle), [this] { drop_old(); });
}

void Pool::drop_old() {
  const TimePoint now = executor_.now();
  (void)std::erase_if(idle_, [&](const auto& each) { return now >= saturating_add(each->idle_since_, longest_idle); });
  if (!idle_.empty()) schedule_dropping();
}

}  // namespace dlock::postgres
