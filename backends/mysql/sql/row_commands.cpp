#include "backends/mysql/sql/row_commands.hpp"

#include <algorithm>
#include <numeric>
#include <ratio>
#include <string>
#include <tuple>
#include <utility>

#include <dlock/duration.hpp>

namespace dlock::mysql {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::nanoseconds;
using Kind = RowRequest::Kind;
using Status = RowAnswer::Status;

namespace {

// Rounded up, so that the lease never ends in the server before it ends in the client.
template <class Unit>
std::string in(nanoseconds time) {
  return std::to_string(std::max<std::int64_t>(std::chrono::ceil<Unit>(time).count(), 1));
}

// How long a bell matters after a release; as in respects_bell of row_statements.cpp.
constexpr milliseconds end_of_bells{500};

RowAnswer granted(std::uint64_t token) {
  return {.status = Status::yes, .token = FencingToken(token)};
}

bool several_may_hold(LockKind kind) {
  return kind == LockKind::read_write || kind == LockKind::semaphore;
}

LeaseStatements statements_of(std::string_view schema, LockKind kind, bool optimistic) {
  if (several_may_hold(kind)) return {};
  return optimistic ? optimistic_statements(schema, kind) : lease_statements(schema, kind);
}

}  // namespace

RowCommands::RowCommands(std::string_view schema, LockKind kind, bool optimistic, std::function<bool()> use_bells)
    : kind_(kind),
      optimistic_(optimistic),
      bells_(!several_may_hold(kind)),
      use_bells_(std::move(use_bells)),
      lease_(statements_of(schema, kind, optimistic)),
      sharing_(bells_ ? SharingStatements{} : sharing_statements(schema, kind)) {}

std::vector<std::size_t> RowCommands::order_of(const Requests& requests) const {
  std::vector<std::size_t> order(requests.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&requests](std::size_t left, std::size_t right) {
    const auto key = [](const RowRequest& request) {
      return std::tuple(std::string_view(request.name), request.kind, !request.may_be_held);
    };
    return key(*requests[left]) < key(*requests[right]);
  });
  return order;
}

// --- Commands --------------------------------------------------------------------------------------------------------

std::vector<Command> RowCommands::commands_for(const Requests& requests, bool quiet) const {
  std::vector<Command> commands;
  const bool with_bells = bells_ && !quiet && use_bells_();
  for (const std::size_t i : order_of(requests)) {
    if (bells_) {
      add_commands(*requests[i], with_bells, commands);
    } else {
      add_changes(*requests[i], commands);
    }
  }
  if (!with_bells) return commands;
  for (const RowRequest* request : requests) {
    const bool may_have_lost = request->kind == Kind::renew || request->gave_up;
    if (may_have_lost) commands.push_back({.statement = &lease_.tidy, .params = {request->name}});
  }
  return commands;
}

std::size_t RowCommands::commands_of(const RowRequest& request) const {
  std::vector<Command> commands;
  if (bells_) {
    add_commands(request, false, commands);
  } else {
    add_changes(request, commands);
  }
  return commands.size();
}

void RowCommands::add_commands(const RowRequest& request, bool bell, std::vector<Command>& commands) const {
  const LeaseStatements::Variant& use = bell ? lease_.with_bell : lease_.plain;
  const std::string owner = request.owner.to_string();
  const std::string lease = optimistic_ ? in<milliseconds>(request.lease) : in<microseconds>(request.lease);
  switch (request.kind) {
    case Kind::release:
      commands.push_back({.statement = &use.release, .params = {request.name, owner}});
      return;
    case Kind::renew:
      commands.push_back({.statement = &use.renew, .params = {lease, request.name, owner}});
      return;
    case Kind::acquire:
      break;
    case Kind::mark:
      return;
  }
  const std::string place = std::to_string(request.place);
  std::vector<sql::Parameter> params = {owner};
  if (bell) params.emplace_back(place);
  if (optimistic_) {
    params.emplace_back(request.stood_still.owner);
    params.emplace_back(std::to_string(request.stood_still.version));
  }
  if (bell) params.insert(params.end(), 2, place);
  params.insert(params.end(), {lease, request.holder, owner, request.name});
  if (request.make_row) commands.push_back({.statement = &lease_.make_row, .params = {request.name}});
  commands.push_back({.statement = &use.acquire, .params = std::move(params)});
  if (optimistic_) commands.push_back({.statement = &lease_.look, .params = {request.name}});
}

void RowCommands::add_changes(const RowRequest& request, std::vector<Command>& commands) const {
  const std::string owner = request.owner.to_string();
  const std::string lease = in<microseconds>(request.lease);
  const auto add = [&commands](const sql::Statement& statement, std::vector<sql::Parameter> params) {
    commands.push_back({.statement = &statement, .params = std::move(params)});
  };
  if (request.kind == Kind::mark) return;
  if (request.kind != Kind::acquire) {
    add(sharing_.lock, {request.name});
    if (request.kind == Kind::renew) return add(sharing_.renew, {lease, request.name, owner});
    add(sharing_.release, {request.name, owner});
    if (kind_ == LockKind::read_write) add(sharing_.unmark, {request.name, owner});
    return;
  }
  const std::string weight = std::to_string(request.weight);
  const std::string permits = std::to_string(request.permits);
  const std::string mark = in<microseconds>(request.mark);
  add(sharing_.open, {request.name});
  if (request.may_be_held) add(sharing_.renew, {lease, request.name, owner});
  add(sharing_.grant, {permits, owner, owner, weight, permits, permits, permits, weight, request.name, owner});
  add(sharing_.enter, {owner, request.holder, weight, lease, request.name});
  if (request.mark > nanoseconds(0)) add(sharing_.mark, {mark, owner, request.name, owner, mark, owner});
  add(sharing_.look, {weight, permits, request.name});
}

std::vector<Command> RowCommands::after_refusal(const Requests& requests) const {
  std::vector<Command> commands;
  if (!bells_ || !use_bells_()) return commands;
  for (const RowRequest* request : requests) {
    if (request->kind == Kind::acquire) commands.push_back({.statement = &lease_.tidy, .params = {request->name}});
  }
  return commands;
}

Command RowCommands::wait(const std::string& name, nanoseconds at_most) const {
  return {.statement = &lease_.wait, .params = {name, in<microseconds>(at_most)}};
}

Command RowCommands::leave(const std::string& name) const {
  return {.statement = &lease_.leave, .params = {name}};
}

// --- Answers ---------------------------------------------------------------------------------------------------------

std::vector<RowAnswer> RowCommands::answers_to(const Requests& requests, std::span<const Rows> results,
                                               TimePoint sent) const {
  std::vector<RowAnswer> answers(requests.size());
  for (const std::size_t i : order_of(requests)) {
    const RowRequest& request = *requests[i];
    const auto own = results.first(std::min(commands_of(request), results.size()));
    answers[i] = bells_ ? answer_of(request, own) : change_answer_of(request, own);
    answers[i].sent = sent;
    results = results.subspan(own.size());
  }
  return answers;
}

RowAnswer RowCommands::answer_of(const RowRequest& request, std::span<const Rows> results) const {
  if (results.empty()) return {.status = Status::no};
  if (request.kind != Kind::acquire) return {.status = results[0].inserted > 0 ? Status::yes : Status::no};
  const Rows& acquired = results[request.make_row ? 1 : 0];
  if (acquired.affected > 0) return granted(acquired.inserted);
  if (acquired.inserted == 0) return {.status = request.make_row ? Status::again : Status::no_row};
  const std::chrono::duration<std::uint64_t, std::micro> left(acquired.inserted);
  RowAnswer answer{.status = Status::no, .lease = Duration(left).value()};
  if (acquired.inserted == 1) answer.lease = end_of_bells;
  const Rows& seen = results.back();
  if (optimistic_) answer.seen = {.owner = seen.text(0, 0), .version = seen.number(0, 1).value_or(0)};
  return answer;
}

RowAnswer RowCommands::change_answer_of(const RowRequest& request, std::span<const Rows> results) const {
  if (results.empty()) return {.status = Status::no};
  // lock, and renew or release
  if (request.kind != Kind::acquire) return {.status = results[1].inserted > 0 ? Status::yes : Status::no};
  // open[, renew], grant
  for (std::size_t i = 1; i < (request.may_be_held ? 3 : 2); ++i) {
    if (results[i].inserted > 0) return granted(results[i].inserted);
  }
  const Rows& row = results.back();
  RowAnswer answer{.status = Status::no};
  const auto permits = row.number(0, 0);
  if (permits != request.permits && row.number(0, 1).value_or(0) > 0) answer.other_permits = permits;
  answer.lease = row.duration(0, 2);
  return answer;
}

}  // namespace dlock::mysql
