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

// In whole milliseconds, rounded up: the server's lease never ends before ours.
std::int64_t in_milliseconds(nanoseconds lease) {
  return std::max<std::int64_t>(std::chrono::ceil<milliseconds>(lease).count(), 1);
}

template <class F>
std::string texts(const Requests& requests, F&& f) {
  std::vector<std::string> elements;
  elements.reserve(requests.size());
  for (const RowRequest* request : requests) elements.push_back(f(*request));
  return text_array({elements.begin(), elements.end()});
}

template <class F>
std::string numbers(const Requests& requests, F&& f) {
  std::vector<std::int64_t> elements;
  elements.reserve(requests.size());
  for (const RowRequest* request : requests) elements.push_back(f(*request));
  return bigint_array(elements);
}

std::string name_of(const RowRequest& request) {
  return request.name;
}
std::string owner_of(const RowRequest& request) {
  return request.owner.to_string();
}
std::int64_t lease_of(const RowRequest& request) {
  return in_milliseconds(request.lease);
}
std::int64_t gave_up(const RowRequest& request) {
  return request.gave_up ? 1 : 0;
}

// Of an acquire: owner, token, owner and version that were seen, ms. Of the others: owner, done.
RowAnswer answer_in(Kind kind, const Rows& rows, std::size_t row, TimePoint sent) {
  RowAnswer answer{.sent = sent};
  if (kind != Kind::acquire) {
    answer.status = rows.flag(row, 1) ? Status::yes : Status::again;
    return answer;
  }
  if (const auto token = rows.number(row, 1)) {
    answer.status = Status::yes;
    answer.token = FencingToken(static_cast<std::uint64_t>(*token));
    return answer;
  }
  answer.status = Status::no;
  answer.seen = {.owner = rows.text(row, 2), .version = rows.number(row, 3).value_or(0)};
  if (const auto ms = rows.number(row, 4)) answer.lease = milliseconds(std::max<std::int64_t>(*ms, 0));
  return answer;
}

}  // namespace

Command RowCommands::of(const Requests& requests, bool quiet) const {
  const std::string channel = quiet ? std::string() : channel_;
  switch (requests.front()->kind) {
    case Kind::release:
      return releases_of(requests, channel);
    case Kind::renew:
      return renewals_of(requests);
    case Kind::acquire:
      break;
  }
  return acquires_of(requests, channel);
}

Command RowCommands::releases_of(const Requests& requests, const std::string& channel) const {
  if (requests.size() == 1) {
    const RowRequest& request = *requests.front();
    return {.statement = &sql_.use().release,
            .params = {request.name, owner_of(request), std::to_string(gave_up(request)), channel}};
  }
  return {.statement = &sql_.use().release_many,
          .params = {texts(requests, name_of), texts(requests, owner_of), numbers(requests, gave_up), channel}};
}

Command RowCommands::renewals_of(const Requests& requests) const {
  return {.statement = &sql_.use().renew_many,
          .params = {texts(requests, name_of), texts(requests, owner_of), numbers(requests, lease_of)}};
}

Command RowCommands::acquires_of(const Requests& requests, const std::string& channel) const {
  Command command;
  if (requests.size() == 1) {
    const RowRequest& request = *requests.front();
    command = {.statement = &sql_.use().acquire,
               .params = {request.name, owner_of(request), request.holder, std::to_string(lease_of(request))}};
    if (variant_.optimistic) {
      command.params.emplace_back(request.stood_still.owner);
      command.params.emplace_back(std::to_string(request.stood_still.version));
    }
  } else {
    command = {.statement = &sql_.use().acquire_many,
               .params = {texts(requests, name_of), texts(requests, owner_of),
                          texts(requests, [](const RowRequest& request) { return request.holder; }),
                          numbers(requests, lease_of)}};
    if (variant_.optimistic) {
      command.params.emplace_back(texts(requests, [](const RowRequest& request) { return request.stood_still.owner; }));
      command.params.emplace_back(
          numbers(requests, [](const RowRequest& request) { return request.stood_still.version; }));
    }
  }
  if (variant_.announces) command.params.emplace_back(channel);
  return command;
}

Command RowCommands::changes_of(const Requests& requests, bool quiet) const {
  const auto in_ms = [](const RowRequest& request) { return std::chrono::ceil<milliseconds>(request.mark).count(); };
  return {
      .statement = &sql_.use().change,
      .params = {texts(requests, name_of), texts(requests, owner_of),
                 numbers(requests,
                         [](const RowRequest& request) {
                           return request.gave_up ? -1 : static_cast<std::int64_t>(request.kind);
                         }),
                 numbers(requests, lease_of), texts(requests, [](const RowRequest& request) { return request.holder; }),
                 numbers(requests, [](const RowRequest& request) { return request.weight; }),
                 numbers(requests, [](const RowRequest& request) { return request.permits; }), numbers(requests, in_ms),
                 quiet ? std::string() : channel_}};
}

std::vector<RowAnswer> RowCommands::answers_to(const Requests& requests, const Rows& rows, TimePoint sent) {
  std::unordered_map<OwnerId, std::size_t> row_of;
  for (std::size_t row = 0; row < rows.size(); ++row) {
    if (const auto owner = OwnerId::parse(rows.text(row, 0))) row_of.emplace(*owner, row);
  }
  std::vector<RowAnswer> answers;
  answers.reserve(requests.size());
  for (const RowRequest* request : requests) {
    const auto found = row_of.find(request->owner);
    // No row of an acquire: busy, and changing.
    answers.push_back(found == row_of.end() ? RowAnswer{.status = Status::no, .sent = sent}
                                            : answer_in(request->kind, rows, found->second, sent));
  }
  return answers;
}

// Number, done, token, permits, ms.
std::vector<RowAnswer> RowCommands::answers_to_changes(std::size_t requests, const Rows& rows, TimePoint sent) {
  std::vector<RowAnswer> answers(requests, {.status = Status::again, .sent = sent});
  for (std::size_t row = 0; row < rows.size(); ++row) {
    const auto number = static_cast<std::size_t>(rows.number(row, 0).value_or(0));
    if (number == 0 || number > answers.size() || rows.text(row, 1).empty()) continue;
    RowAnswer& answer = answers[number - 1];
    answer.status = rows.flag(row, 1) ? Status::yes : Status::no;
    answer.token = FencingToken(static_cast<std::uint64_t>(rows.number(row, 2).value_or(0)));
    answer.other_permits = rows.number(row, 3);
    if (const auto ms = rows.number(row, 4)) answer.lease = milliseconds(*ms);
  }
  return answers;
}

}  // namespace dlock::postgres
