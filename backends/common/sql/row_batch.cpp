#include "backends/common/sql/row_batch.hpp"

#include <algorithm>
#include <iterator>
#include <span>
#include <utility>

#include <dlock/duration.hpp>
#include <dlock/spi/backoff.hpp>

namespace dlock::sql {

using std::chrono::milliseconds;
using std::chrono::nanoseconds;
using Kind = RowRequest::Kind;
using Status = RowAnswer::Status;

namespace {

constexpr std::size_t most_in_a_query = 500;
// If the store is sharing(): for each request, its statement reads all of them.
constexpr std::size_t most_changes_in_a_query = 100;
// libpq sends 8 KiB at a time. If a query of several commands were longer, the server could carry out the first of them
// before the rest is sent, and keep their rows locked for as long as this process is stopped there. Something is left
// for a statement that has to be prepared; behind a pooler each is sent with its text.
constexpr std::size_t most_bytes_together = 6 << 10;
constexpr std::size_t bytes_of_owner = 32;
constexpr std::size_t bytes_around = 16;  // numbers, commas
// If the query ends at about the same time, its outcome, which says more, comes first.
constexpr nanoseconds behind_the_query = milliseconds(20);
// If the queue of notifications was full, no query notifies for this time. Waiters poll.
constexpr nanoseconds quiet_for = std::chrono::seconds(1);
// A name stays suspect for this time, or until its request was carried out alone. A name that the database's encoding
// cannot represent becomes suspect again with each request; a transaction that has inserted a row ends.
constexpr nanoseconds suspected_for = std::chrono::seconds(10);
constexpr std::size_t most_suspects = 1000;
// While another client changes a row: again at once, then after pauses that double. To mark many locks takes some
// milliseconds.
constexpr nanoseconds first_pause = milliseconds(5);
constexpr int most_times_locked = 6;

std::size_t bytes_of(const RowRequest& request) {
  return request.name.size() + request.holder.size() + request.stood_still.owner.size() + bytes_of_owner + bytes_around;
}

}  // namespace

// One query: commands for each kind of request in it.
struct RowBatch::Load {
  struct Part : std::vector<std::pair<Table::Id, std::shared_ptr<const RowRequest>>> {
    std::size_t first_command = 0;
    std::size_t commands = 0;
  };
  std::vector<Part> parts;
  bool quiet = false;
  bool notifies = false;
  std::size_t size = 0;

  [[nodiscard]] static RowStore::Requests requests_of(const Part& part) {
    RowStore::Requests requests;
    requests.reserve(part.size());
    for (const auto& [id, request] : part) requests.push_back(request.get());
    return requests;
  }
};

RowBatch::RowBatch(Commands& commands, const RowStore& store)
    : commands_(commands),
      store_(store),
      requests_(commands.executor(), *this),
      server_is_known_(!store.depends_on_server()),
      window_timer_(commands.executor()),
      pause_timer_(commands.executor()) {}

void RowBatch::ask(RowRequest request, Handler done) {
  // The query in flight may wait for a connection more patiently than this request.
  if (in_flight_ > 0 && !request.patient) commands_.session().want();
  const TimePoint deadline = request.deadline;
  requests_.wait(
      {.id = requests_.next_id(),
       .deadline = deadline,
       .payload = {.request = std::make_shared<const RowRequest>(std::move(request)), .done = std::move(done)}});
  window_.asked(now());
  schedule();
}

// At the end of this turn of the engine, so that all requests of the turn are sent together.
void RowBatch::schedule() {
  if (in_flight_ > 0 || scheduled_ || requests_.waiting().empty()) return;
  if (const auto until = window_.waits_until(now())) {
    if (!window_timer_.armed()) window_timer_.arm(*until, [this] { schedule(); });
    return;
  }
  window_timer_.disarm();
  scheduled_ = true;
  commands_.executor().post(lifetime_.guard([this] {
    scheduled_ = false;
    if (in_flight_ == 0) send();
  }));
}

// --- Out -------------------------------------------------------------------------------------------------------------

// If the statements depend on the server, it must be known before the first query is made.
void RowBatch::identify_server() {
  const auto entries = std::make_shared<Entries>(requests_.take_waiting(most_in_a_query));
  if (entries->empty()) return;
  TimePoint deadline = TimePoint::min();
  bool patient = true;
  for (const Table::Entry& entry : *entries) {
    deadline = std::max(deadline, entry.deadline);
    patient = patient && entry.payload.request->patient;
  }
  const auto done = lifetime_.guard([this, entries](const Outcome& outcome, const Results&) {
    --in_flight_;
    server_is_known_ = outcome.problem == Problem::none;
    RowAnswer answer{.status = Status::failed, .failure = outcome.failure};
    if (answer.failure.code == errc::ambiguous) answer.failure.code = errc::unavailable;
    const Lifetime::Watch life = lifetime_.watch();
    for (Table::Entry& entry : *entries) {
      server_is_known_ ? requests_.wait(std::move(entry)) : entry.payload.done(answer);
      if (life.over()) return;
    }
    schedule();
  });
  ++in_flight_;
  (void)commands_.session().request({.query = {.commands = {{.text = commands_.dialect().heartbeat()}}, .done = done},
                                     .deadline = deadline,
                                     .patient = patient,
                                     .aside = true});
}

void RowBatch::send() {
  if (!server_is_known_) return identify_server();
  Entries entries = requests_.take_waiting(store_.sharing() ? most_changes_in_a_query : most_in_a_query);
  if (entries.empty()) return;
  const auto alone = std::stable_partition(entries.begin(), entries.end(), [this](const Table::Entry& entry) {
    return !is_suspect(*entry.payload.request);
  });
  Entries those_alone(std::make_move_iterator(alone), std::make_move_iterator(entries.end()));
  entries.erase(alone, entries.end());
  if (!entries.empty()) send(fit_for_one_query(std::move(entries)));
  for (Table::Entry& entry : those_alone) {
    Entries one;
    one.push_back(std::move(entry));
    send(std::move(one));
  }
}

bool RowBatch::is_suspect(const RowRequest& request) const {
  const auto found = suspects_.find(request.name);
  return found != suspects_.end() && now() < found->second;
}

// If the requests are too long for one query, or behind a pooler, where statements are not prepared, only the requests
// of the first kind are sent, and the others wait.
RowBatch::Entries RowBatch::fit_for_one_query(Entries entries) {
  std::size_t bytes = 0;
  for (const Table::Entry& entry : entries) bytes += bytes_of(*entry.payload.request);
  if (store_.sharing() || (!commands_.server().pooled && bytes <= most_bytes_together)) return entries;
  const Kind kind = entries.front().payload.request->kind;
  const auto others = std::stable_partition(entries.begin(), entries.end(), [kind](const Table::Entry& entry) {
    return entry.payload.request->kind == kind;
  });
  for (auto entry = others; entry != entries.end(); ++entry) requests_.wait(std::move(*entry));
  entries.erase(others, entries.end());
  return entries;
}

void RowBatch::send(Entries entries) {
  const auto load = std::make_shared<Load>();
  load->quiet = now() < quiet_until_;
  load->size = entries.size();
  // Releases, renewals, acquires: a name that is released can be acquired in the same query.
  std::map<Kind, Load::Part> by_kind;
  TimePoint deadline = TimePoint::min();
  bool patient = true;
  for (const Table::Entry& entry : entries) {
    const RowRequest& request = *entry.payload.request;
    by_kind[store_.sharing() && request.kind != Kind::mark ? Kind::acquire : request.kind].emplace_back(
        entry.id, entry.payload.request);
    deadline = std::max(deadline, request.deadline);
    patient = patient && request.patient;
    load->notifies = load->notifies || store_.notifies(request);
  }
  for (Table::Entry& entry : entries) {
    entry.deadline = entry.deadline < deadline ? saturating_add(entry.deadline, behind_the_query) : TimePoint::max();
    (void)requests_.sent(std::move(entry));
  }
  Query query;
  for (auto& [kind, part] : by_kind) {
    auto commands = store_.commands_for(Load::requests_of(part), load->quiet);
    part.first_command = query.commands.size();
    part.commands = commands.size();
    std::move(commands.begin(), commands.end(), std::back_inserter(query.commands));
    load->parts.push_back(std::move(part));
  }
  query.done = lifetime_.guard(
      [this, load](const Outcome& outcome, const Results& results) { answered(load, outcome, results); });
  ++in_flight_;
  commands_.run(std::move(query), deadline, MissingSchema::make, patient);
}

// --- In --------------------------------------------------------------------------------------------------------------

void RowBatch::answered(const std::shared_ptr<Load>& load, const Outcome& outcome, const Results& results) {
  if (--in_flight_ == 0) window_.answered(load->size, outcome.sent, now());
  schedule();
  if (outcome.problem != Problem::none) return refused(*load, outcome);
  if (load->size == 1) suspects_.erase(load->parts.front().front().second->name);
  std::vector<RowAnswer> answers;
  answers.reserve(load->size);
  for (const Load::Part& part : load->parts) {
    const auto of_part = std::span(results).subspan(part.first_command, part.commands);
    auto some = store_.answers_to(Load::requests_of(part), of_part, outcome.sent);
    answers.insert(answers.end(), std::make_move_iterator(some.begin()), std::make_move_iterator(some.end()));
  }
  give(*load, answers);
}

void RowBatch::refused(const Load& load, Outcome outcome) {
  if (outcome.problem == Problem::refused) undo(load);
  if (commands_.dialect().is_full_of_notifications(outcome) && load.notifies && !load.quiet) {
    quiet_until_ = saturating_add(now(), quiet_for);
    return ask_again(load);
  }
  if (outcome.problem == Problem::refused) {
    // Another client inserts the same row, or has locked more than rows. That says nothing about the locks.
    if (commands_.dialect().meaning_of(outcome).remedy == Remedy::busy) outcome.failure.code = errc::unavailable;
    if (commands_.dialect().may_be_ones_fault(outcome)) {
      suspect(load, outcome);
      if (load.size > 1) return ask_again(load);
    }
  }
  give(load, {load.size, {.status = Status::failed, .failure = outcome.failure, .sent = outcome.sent}});
}

void RowBatch::undo(const Load& load) {
  Query query;
  for (const Load::Part& part : load.parts) {
    auto commands = store_.after_refusal(Load::requests_of(part));
    std::move(commands.begin(), commands.end(), std::back_inserter(query.commands));
  }
  if (!query.commands.empty()) commands_.run(std::move(query), commands_.answer_by(), MissingSchema::refuse);
}

// One name may be the reason why all of the query was rolled back: the database's encoding has no characters for it, or
// another open transaction has inserted its row. It is a name of the command that failed, or any name if the commit
// did.
void RowBatch::suspect(const Load& load, const Outcome& outcome) {
  if (suspects_.size() >= most_suspects) suspects_.clear();
  const auto failed_in = [at = outcome.failed_command](const Load::Part& part) {
    return at >= part.first_command && at < part.first_command + part.commands;
  };
  const bool known = std::any_of(load.parts.begin(), load.parts.end(), failed_in);
  for (const Load::Part& part : load.parts) {
    if (known && !failed_in(part)) continue;
    for (const auto& [id, request] : part) suspects_[request->name] = saturating_add(now(), suspected_for);
  }
}

void RowBatch::give(const Load& load, const std::vector<RowAnswer>& answers) {
  const Lifetime::Watch life = lifetime_.watch();
  auto answer = answers.begin();
  for (const Load::Part& part : load.parts) {
    for (const auto& [id, request] : part) {
      if (answer == answers.end()) return;  // never: a query has a result for each of its commands
      const RowAnswer& given = *answer++;
      auto entry = requests_.take(id);
      if (!entry || !entry->payload.done) continue;
      if (given.status == Status::no_row) {
        RowRequest again = *request;
        again.make_row = true;
        entry->payload.request = std::make_shared<const RowRequest>(std::move(again));
        entry->deadline = request->deadline;
        requests_.wait(std::move(*entry));
        schedule();
      } else if (given.status == Status::again && request->kind != Kind::mark) {
        pause(std::move(*entry));
      } else {
        entry->payload.done(given);
      }
      if (life.over()) return;
    }
  }
}

// --- Again -----------------------------------------------------------------------------------------------------------

void RowBatch::ask_again(const Load& load) {
  for (const Load::Part& part : load.parts) {
    for (const auto& [id, request] : part) {
      auto entry = requests_.take(id);
      if (!entry || !entry->payload.done) continue;
      entry->deadline = request->deadline;
      requests_.wait(std::move(*entry));
    }
  }
  schedule();
}

void RowBatch::pause(Table::Entry entry) {
  const RowRequest& request = *entry.payload.request;
  const int times = ++entry.payload.times_locked;
  TimePoint at = now();
  if (times > 1) {
    const nanoseconds at_most = first_pause * (1 << (times - 2));
    at = saturating_add(at, random_between(at_most / 2, at_most, commands_.executor()));
  }
  if (times == most_times_locked || at >= request.deadline) {
    return entry.payload.done(
        {.status = Status::failed,
         .failure = {errc::unavailable, "another transaction keeps the row of lock \"" + request.name + "\" locked"}});
  }
  entry.deadline = request.deadline;
  if (times == 1) {
    requests_.wait(std::move(entry));
    return schedule();
  }
  pausing_.emplace(at, std::move(entry));
  pause_timer_.arm(pausing_.begin()->first, [this] { end_pauses(); });
}

void RowBatch::end_pauses() {
  while (!pausing_.empty() && pausing_.begin()->first <= now()) {
    requests_.wait(std::move(pausing_.extract(pausing_.begin()).mapped()));
  }
  if (!pausing_.empty()) pause_timer_.arm(pausing_.begin()->first, [this] { end_pauses(); });
  schedule();
}

// --- Deadlines -------------------------------------------------------------------------------------------------------

void RowBatch::requests_overdue(Entries sent, Entries unsent) {
  const RowAnswer no_answer{.status = Status::failed, .failure = commands_.no_answer()};
  const RowAnswer not_asked{
      .status = Status::failed,
      .failure = {errc::unavailable, commands_.server().endpoint + ": no answer in time to an earlier request"}};
  const Lifetime::Watch life = lifetime_.watch();
  for (const Entries* entries : {&unsent, &sent}) {
    for (const Table::Entry& entry : *entries) {
      entry.payload.done(entries == &sent ? no_answer : not_asked);
      if (life.over()) return;
    }
  }
}

}  // namespace dlock::sql
