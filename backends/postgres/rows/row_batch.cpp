#include "backends/postgres/rows/row_batch.hpp"

#include <algorithm>
#include <iterator>
#include <string_view>
#include <unordered_map>
#include <utility>

#include <dlock/duration.hpp>

#include "backends/postgres/sql/sqlstate.hpp"

namespace dlock::postgres {

using std::chrono::milliseconds;
using std::chrono::nanoseconds;
using Kind = RowRequest::Kind;
using Status = RowAnswer::Status;

namespace {

constexpr std::size_t most_in_a_query = 500;
// The parts of that statement are looked through for each of its requests.
constexpr std::size_t most_changes_in_a_query = 100;
// libpq sends 8 KiB at a time. Were a query of several commands longer, the server could carry out the first of them
// before the rest is sent, and keep their rows locked for as long as this process is stopped there. Something is left
// for a statement that has to be prepared; behind a pooler none is, and each is sent as it is.
constexpr std::size_t most_bytes_together = 6 << 10;
constexpr std::size_t bytes_of_owner = 32;
constexpr std::size_t bytes_around = 8;  // numbers, commas
// The query's own end, which says what became of it, comes first where it is about the same.
constexpr nanoseconds behind_the_query = milliseconds(20);
// Where the queue of notifications was full, none is tried for so long. Each waiter asks now and then by itself.
constexpr nanoseconds quiet_for = std::chrono::seconds(1);

template <class Items>
RowCommands::Requests requests_of(const Items& items) {
  RowCommands::Requests requests;
  requests.reserve(items.size());
  for (const auto& item : items) requests.push_back(&item->request);
  return requests;
}

}  // namespace

struct RowBatch::Load {
  Items releases;
  Items renewals;
  Items acquires;
  TimePoint deadline = TimePoint::min();
  bool patient = true;  // all of them are
  bool quiet = false;   // it sends no notification
  bool with_queue = true;

  [[nodiscard]] std::size_t size() const noexcept { return releases.size() + renewals.size() + acquires.size(); }
  [[nodiscard]] bool is_of_one_kind() const noexcept {
    return size() == std::max({releases.size(), renewals.size(), acquires.size()});
  }
  // As parameters, more or less.
  [[nodiscard]] std::size_t bytes() const {
    std::size_t sum = 0;
    for_each([&sum](const auto& item) { sum += item->request.name.size() + bytes_of_owner + bytes_around; });
    for (const auto& item : acquires) {
      sum += item->request.holder.size() + item->request.stood_still.owner.size() + bytes_around;
    }
    return sum;
  }
  [[nodiscard]] Items all() const {
    Items items;
    items.reserve(size());
    for_each([&items](const auto& item) { items.push_back(item); });
    return items;
  }
  [[nodiscard]] Items& of(Kind kind) noexcept {
    return kind == Kind::release ? releases : kind == Kind::renew ? renewals : acquires;
  }
  template <class F>
  void for_each(F&& f) const {
    for (const Items* items : {&releases, &renewals, &acquires}) {
      for (const auto& item : *items) f(item);
    }
  }
};

RowBatch::RowBatch(Commands& commands, RowSql& sql, Variant variant, std::string channel)
    : commands_(commands),
      sql_(sql),
      variant_(variant),
      statements_(sql, variant, std::move(channel)),
      window_timer_(commands.executor()),
      timer_(commands.executor()) {}

RowBatch::~RowBatch() = default;

void RowBatch::ask(RowRequest request, Handler done) {
  arm(request.deadline);
  // What is under way may wait for a connection, and have time to.
  if (!under_way_.empty() && !request.patient) commands_.session().want();
  waiting_.push_back(
      std::make_shared<Item>(Item{.request = std::move(request),
                                  .done = std::move(done),
                                  .at_most = variant_.sharing ? most_changes_in_a_query : most_in_a_query}));
  window_.asked(commands_.executor().now());
  schedule();
}

// At the end of this turn of the engine, so that what is asked in it goes out together.
void RowBatch::schedule() {
  if (!under_way_.empty() || scheduled_ || waiting_.empty()) return;
  if (const auto until = window_.waits_until(commands_.executor().now())) {
    if (!window_timer_.armed()) window_timer_.arm(*until, [this] { schedule(); });
    return;
  }
  window_timer_.disarm();
  scheduled_ = true;
  commands_.executor().post(lifetime_.guard([this] {
    scheduled_ = false;
    send();
  }));
}

// --- Out -------------------------------------------------------------------------------------------------------------

void RowBatch::send() {
  if (!under_way_.empty()) return;
  const auto load = take_load();
  if (load->size() == 0) return;
  if (variant_.sharing || load->is_of_one_kind() ||
      (!commands_.server().pooled && load->bytes() <= most_bytes_together)) {
    under_way_ = {load};
  } else {
    for (const Kind kind : {Kind::release, Kind::renew, Kind::acquire}) {
      if (load->of(kind).empty()) continue;
      auto part = std::make_shared<Load>();
      part->of(kind) = std::move(load->of(kind));
      part->deadline = load->deadline;
      part->patient = load->patient;
      part->quiet = load->quiet;
      part->with_queue = load->with_queue;
      under_way_.push_back(std::move(part));
    }
  }
  for (const auto& part : std::vector(under_way_)) {
    commands_.run(query_of(part), part->deadline, MissingSchema::make, part->patient);
  }
}

// A name is acquired by one of those who ask; the others of this turn follow it, and have the lock found busy. An owner
// that may hold it already has to ask for itself.
std::shared_ptr<RowBatch::Load> RowBatch::take_load() {
  auto load = std::make_shared<Load>();
  load->quiet = commands_.executor().now() < quiet_until_;
  load->with_queue = sql_.has_queue();
  std::unordered_map<std::string_view, Item*> first;
  std::deque<std::shared_ptr<Item>> later;
  std::size_t at_most = most_in_a_query;
  while (!waiting_.empty() && load->size() < at_most) {
    auto item = std::move(waiting_.front());
    waiting_.pop_front();
    if (!item->done) {  // too late; those who followed it ask for themselves
      std::move(item->followers.begin(), item->followers.end(), std::back_inserter(waiting_));
      continue;
    }
    if (load->size() == 0) at_most = item->at_most;
    if (item->at_most != at_most) {
      later.push_back(std::move(item));
      continue;
    }
    const RowRequest& request = item->request;
    if (request.kind == Kind::acquire && !variant_.sharing) {
      const auto [found, fresh] = first.try_emplace(request.name, item.get());
      if (!fresh) {
        if (request.may_be_held) {
          later.push_back(std::move(item));
        } else {
          found->second->followers.push_back(std::move(item));
        }
        continue;
      }
    }
    load->deadline = std::max(load->deadline, request.deadline);
    load->patient = load->patient && request.patient;
    load->of(request.kind).push_back(std::move(item));
  }
  waiting_.insert(waiting_.begin(), std::make_move_iterator(later.begin()), std::make_move_iterator(later.end()));
  return load;
}

Query RowBatch::query_of(const std::shared_ptr<Load>& load) {
  Query query;
  if (variant_.sharing) {
    query.commands.push_back(statements_.changes_of(requests_of(load->all()), load->quiet));
  } else {
    for (const Items* items : {&load->releases, &load->renewals, &load->acquires}) {
      if (!items->empty()) query.commands.push_back(statements_.of(requests_of(*items), load->quiet));
    }
  }
  query.done = lifetime_.guard(
      [this, load](const Outcome& outcome, const Results& results) { answered(load, outcome, results); });
  return query;
}

// --- In --------------------------------------------------------------------------------------------------------------

void RowBatch::answered(const std::shared_ptr<Load>& load, const Outcome& outcome, const Results& results) {
  (void)std::erase(under_way_, load);
  if (under_way_.empty()) window_.answered(load->size(), outcome.sent, commands_.executor().now());
  schedule();
  if (outcome.problem != Problem::none) return refused(load, outcome);
  if (variant_.sharing) {
    if (!results.empty()) {
      const Items items = load->all();
      give(items, RowCommands::answers_to_changes(items.size(), results.front(), outcome.sent));
    }
    return;
  }
  const Lifetime::Watch life = lifetime_.watch();
  auto rows = results.begin();
  for (const Items* items : {&load->releases, &load->renewals, &load->acquires}) {
    if (items->empty()) continue;
    if (rows == results.end()) return;  // a query has a result for each of its commands
    give(*items, RowCommands::answers_to(requests_of(*items), *rows++, outcome.sent));
    if (life.over()) return;
  }
}

void RowBatch::refused(const std::shared_ptr<Load>& load, const Outcome& answered) {
  Outcome outcome = answered;
  if (sql_.does_without(outcome, load->with_queue)) {
    for (const Items* items : {&load->acquires, &load->renewals, &load->releases}) ask_again_first(*items);
    return;
  }
  // Where several may hold a lock, a renewal, too, finds that others' leases are over.
  const bool notifies = variant_.sharing || !load->releases.empty() || (variant_.announces && !load->acquires.empty());
  if (is_full_of_notifications(outcome) && notifies && !load->quiet) {
    quiet_until_ = saturating_add(commands_.executor().now(), quiet_for);
    for (const Items* items : {&load->acquires, &load->renewals, &load->releases}) ask_again_first(*items);
    return;
  }
  if (outcome.problem == Problem::refused) {
    // Another client inserts the same row, or has locked more than rows. Says nothing about any lock of ours.
    if (meaning_of(outcome).remedy == Remedy::busy) outcome.failure.code = errc::unavailable;
    if (may_be_ones_fault(outcome) && load->size() > 1) return search(load, outcome);
  }
  const RowAnswer answer{.status = Status::failed, .failure = outcome.failure, .sent = outcome.sent};
  const Lifetime::Watch life = lifetime_.watch();
  load->for_each([&](const std::shared_ptr<Item>& item) {
    if (!life.over()) give(*item, answer);
  });
}

// It may be one name's fault that all of it was rolled back: one that the database's encoding has no characters for, or
// whose row another open transaction has inserted. It is among those of the command that failed, or of all where the
// commit did, and searched for there by halves.
void RowBatch::search(const std::shared_ptr<Load>& load, const Outcome& outcome) {
  Items suspects;
  Items others;
  std::vector<const Items*> commands;
  for (const Items* items : {&load->releases, &load->renewals, &load->acquires}) {
    if (!items->empty()) commands.push_back(items);
  }
  for (std::size_t i = 0; i < commands.size(); ++i) {
    const bool suspect = variant_.sharing || i == outcome.failed_command || outcome.failed_command >= commands.size();
    Items& kind = suspect ? suspects : others;
    kind.insert(kind.end(), commands[i]->begin(), commands[i]->end());
  }
  std::shared_ptr<Item> found;
  if (suspects.size() == 1) found = std::exchange(suspects, {}).front();
  for (const auto& item : suspects) item->at_most = (suspects.size() + 1) / 2;
  ask_again_first(suspects);
  ask_again_first(others);
  if (found) give(*found, {.status = Status::failed, .failure = outcome.failure, .sent = outcome.sent});
}

void RowBatch::ask_again_first(const Items& items) {
  for (const auto& item : items) arm(item->request.deadline);
  waiting_.insert(waiting_.begin(), items.begin(), items.end());
  schedule();
}

void RowBatch::give(const Items& items, const std::vector<RowAnswer>& answers) {
  const Lifetime::Watch life = lifetime_.watch();
  auto answer = answers.begin();
  for (const auto& item : items) {
    give(*item, *answer++);
    if (life.over()) return;
  }
}

// The followers have not asked: for them the lock is busy, or their acquire has not been carried out.
void RowBatch::give(Item& item, const RowAnswer& answer) {
  const Lifetime::Watch life = lifetime_.watch();
  const auto followers = std::exchange(item.followers, {});
  if (const auto done = std::exchange(item.done, nullptr)) done(answer);
  for (const auto& follower : followers) {
    if (life.over()) return;
    const auto done = std::exchange(follower->done, nullptr);
    if (!done) continue;
    RowAnswer theirs = answer;
    if (answer.status == Status::yes) {
      theirs = {.status = Status::no, .sent = answer.sent, .lease = item.request.lease};
    } else if (answer.status == Status::failed && answer.failure.code == errc::ambiguous) {
      theirs.failure.code = errc::unavailable;
    }
    done(theirs);
  }
}

// --- Time ------------------------------------------------------------------------------------------------------------

void RowBatch::arm(TimePoint at) {
  if (at >= armed_for_) return;
  armed_for_ = at;
  timer_.arm(at, [this] { fail_overdue(); });
}

void RowBatch::fail_overdue() {
  armed_for_ = TimePoint::max();
  const TimePoint now = commands_.executor().now();
  std::vector<std::pair<Handler, Failure>> overdue;
  TimePoint next = TimePoint::max();
  const auto look = [&](Item& item, TimePoint deadline, const Failure& why) {
    if (!item.done) return;
    if (now >= deadline) {
      overdue.emplace_back(std::exchange(item.done, nullptr), why);
    } else {
      next = std::min(next, deadline);
    }
  };
  const Failure not_asked{errc::unavailable, commands_.server().endpoint + ": no answer in time to an earlier request"};
  const Failure no_answer = commands_.no_answer();
  for (const auto& item : waiting_) {
    for (const auto& follower : item->followers) look(*follower, follower->request.deadline, not_asked);
    look(*item, item->request.deadline, not_asked);
  }
  for (const auto& load : under_way_) {
    load->for_each([&](const std::shared_ptr<Item>& item) {
      for (const auto& follower : item->followers) look(*follower, follower->request.deadline, not_asked);
      const TimePoint deadline = item->request.deadline;
      if (deadline < load->deadline) look(*item, saturating_add(deadline, behind_the_query), no_answer);
    });
  }
  arm(next);
  const Lifetime::Watch life = lifetime_.watch();
  for (const auto& [done, why] : overdue) {
    done({.status = Status::failed, .failure = why});
    if (life.over()) return;
  }
}

}  // namespace dlock::postgres
