#include "backends/zookeeper/administration/queries.hpp"

#include "backends/common/for_each_still_in.hpp"

namespace dlock::zookeeper {

void Queries::open(std::function<void()> begins, std::function<void(Failure)> fails) {
  const std::uint64_t id = last_id_;
  Open& open = open_.try_emplace(id, executor_).first->second;
  open.begin = std::move(begins);
  open.fail = std::move(fails);
  open.deadline.arm(answer_by(), [this, id] {
    const Failure& last = open_.at(id).problem;
    Failure why = session_.ready() && last.code ? last : session_.problem();
    if (!why.code) why.detail = "ZooKeeper did not answer in time";
    why.code = why.code == errc::access_denied ? errc::access_denied : errc::unavailable;
    fail(id, std::move(why));
  });
  if (session_.ready()) return begin(id, open);
  session_.want();
}

void Queries::begin(std::uint64_t id, Open& open) {
  const auto begin = std::exchange(open.begin, nullptr);
  if (!begin) return;
  // Sent ahead of the reads, and answered before them.
  session_.confirm_leader([this, id](const Outcome& outcome) {
    if (outcome.problem != Problem::none) fail(id, unanswered_question(outcome.failure));
  });
  begin();
}

void Queries::fail(std::uint64_t id, Failure why) {
  const auto open = open_.find(id);
  if (open == open_.end()) return;
  const auto fail = open->second.fail;  // which removes it
  fail(std::move(why));
}

void Queries::session_ready() {
  common::for_each_still_in(open_, [this](std::uint64_t id, Open& open) {
    if (session_.ready()) begin(id, open);
  });
}

void Queries::session_refused(const Failure& why) {
  common::for_each_still_in(open_, [&](std::uint64_t id, const Open&) { fail(id, why); });
}

}  // namespace dlock::zookeeper
