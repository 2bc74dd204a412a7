#include "backends/postgres/rows/row_commands.hpp"

#include <algorithm>
#include <unordered_map>
#include <utility>

namespace dlock::postgres {

using std::chrono::milliseconds;
using std::chrono::nanoseconds;
using Kind = RowRequest::Kind;
using Status = RowAnswer::Status;
using Requests = RowCommands::Requests;

namespace {

// One parameter of a statement: an array, or for a statement of one request its value.
struct Column {
  const Requests& requests;
  const bool one;

  template <class F>
  [[nodiscard]] std::string texts(F&& f) const {
    if (one) return f(*requests.front());
    std::vector<std::string> elements;
    elements.reserve(requests.size());
    for (const RowRequest* request : requests) elements.push_back(f(*request));
    return text_array({elements.begin(), elements.end()});
  }
  template <class F>
  [[nodiscard]] std::string numbers(F&& f) const {
    if (one) return std::to_string(f(*requests.front()));
    std::vector<std::int64_t> elements;
    elements.reserve(requests.size());
    for (const RowRequest* request : requests) elements.push_back(f(*request));
    return bigint_array(elements);
  }
  // In whole milliseconds, rounded up, so that the lease never ends in the server before it ends in the client.
  [[nodiscard]] std::string leases() const {
    return numbers([](const RowRequest& request) {
      return std::max<std::int64_t>(std::chrono::ceil<milliseconds>(request.lease).count(), 1);
    });
  }
  [[nodiscard]] std::string holders() const {
    return texts([](const RowRequest& request) { return request.holder; });
  }
};

// Columns: number, done, token, permits, ms.
std::vector<RowAnswer> answers_to_changes(std::size_t requests, const Rows& rows, TimePoint sent) {
  std::vector<RowAnswer> answers(requests, {.status = Status::again, .sent = sent});
  for (std::size_t row = 0; row < rows.size(); ++row) {
    const auto number = static_cast<std::size_t>(rows.number(row, 0).value_or(0));
    if (number == 0 || number > answers.size() || rows.text(row, 1).empty()) continue;
    RowAnswer& answer = answers[number - 1];
    answer.status = rows.flag(row, 1) ? Status::yes : Status::no;
    answer.token = FencingToken(static_cast<std::uint64_t>(rows.number(row, 2).value_or(0)));
    answer.other_permits = rows.number(row, 3);
    answer.lease = rows.duration(row, 4);
  }
  return answers;
}

// Columns of an acquire: owner, token, owner and version that were seen, ms. All others: owner or name, done.
RowAnswer answer_in(Kind kind, const Rows& rows, std::size_t row, TimePoint sent) {
  RowAnswer answer{.sent = sent};
  if (kind != Kind::acquire) {
    const bool no = kind == Kind::mark && !rows.text(row, 1).empty();
    answer.status = rows.flag(row, 1) ? Status::yes : no ? Status::no : Status::again;
    return answer;
  }
  if (const auto token = rows.number(row, 1)) {
    answer.status = Status::yes;
    answer.token = FencingToken(static_cast<std::uint64_t>(*token));
    return answer;
  }
  answer.status = Status::no;
  answer.seen = {.owner = rows.text(row, 2), .version = rows.number(row, 3).value_or(0)};
  if (const auto lease = rows.duration(row, 4)) answer.lease = std::max(*lease, std::chrono::nanoseconds(0));
  return answer;
}

}  // namespace

std::vector<Command> RowCommands::commands_for(const Requests& requests, bool quiet) const {
  const std::string channel = quiet || !notifies(*requests.front()) ? std::string() : channel_;
  const bool marks = requests.front()->kind == Kind::mark;
  const bool one = requests.size() == 1 && !sharing() && !marks;
  const Column column{requests, one};
  std::vector<Parameter> params = {column.texts([](const RowRequest& request) { return request.name; })};
  if (marks) {
    params.emplace_back(std::to_string(mark_for.count()));
    params.emplace_back(std::to_string(marked_for.count()));
    return {{.statement = &statements_.mark, .params = std::move(params)}};
  }
  params.emplace_back(column.texts([](const RowRequest& request) { return request.owner.to_string(); }));
  const auto add = [&params](std::string param) { params.emplace_back(std::move(param)); };
  const auto add_numbers = [&](auto&& f) { add(column.numbers(f)); };
  if (sharing()) {
    add_numbers([](const RowRequest& request) { return request.gave_up ? -1 : std::int64_t(request.kind); });
    add(column.leases());
    add(column.holders());
    add_numbers([](const RowRequest& request) { return request.weight; });
    add_numbers([](const RowRequest& request) { return request.permits; });
    add_numbers([](const RowRequest& request) { return std::chrono::ceil<milliseconds>(request.mark).count(); });
    add(channel);
    return {{.statement = &statements_.change, .params = std::move(params)}};
  }
  switch (requests.front()->kind) {
    case Kind::release:
      add_numbers([](const RowRequest& request) { return std::int64_t(request.gave_up); });
      add(channel);
      return {{.statement = one ? &statements_.release_one : &statements_.release, .params = std::move(params)}};
    case Kind::renew:
      add(column.leases());
      return {{.statement = one ? &statements_.renew_one : &statements_.renew, .params = std::move(params)}};
    case Kind::acquire:
    case Kind::mark:
      break;
  }
  add(column.holders());
  add(column.leases());
  add(column.texts([](const RowRequest& request) { return request.stood_still.owner; }));
  add_numbers([](const RowRequest& request) { return request.stood_still.version; });
  add_numbers([](const RowRequest& request) { return std::int64_t(request.may_be_held); });
  add(channel);
  return {{.statement = one ? &statements_.acquire_one : &statements_.acquire, .params = std::move(params)}};
}

std::vector<RowAnswer> RowCommands::answers_to(const Requests& requests, std::span<const Rows> results,
                                               TimePoint sent) const {
  const Rows& rows = results.front();
  const bool marks = requests.front()->kind == Kind::mark;
  if (sharing() && !marks) return answers_to_changes(requests.size(), rows, sent);
  std::unordered_map<std::string, std::size_t> row_of;  // by owner; for marks, by name
  for (std::size_t row = 0; row < rows.size(); ++row) row_of.emplace(rows.text(row, 0), row);
  std::vector<RowAnswer> answers;
  answers.reserve(requests.size());
  for (const RowRequest* request : requests) {
    const auto found = row_of.find(marks ? request->name : request->owner.to_string());
    // An acquire without a row: the lock is busy, and a transaction is changing it.
    answers.push_back(found == row_of.end() ? RowAnswer{.status = Status::no, .sent = sent}
                                            : answer_in(request->kind, rows, found->second, sent));
  }
  return answers;
}

}  // namespace dlock::postgres
