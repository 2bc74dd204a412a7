#include "backends/etcd/wire/messages.hpp"

#include <string>
#include <utility>

#include "backends/etcd/wire/protobuf.hpp"

namespace dlock::etcd {

namespace {

// Numbers of etcd's enumerations.
constexpr std::uint64_t sort_ascending = 1;
constexpr std::uint64_t sort_descending = 2;
constexpr std::uint64_t sort_by_created = 2;
constexpr std::uint64_t compare_created = 1;
const std::string no_puts(1, '\0');  // a packed list of filters

MessageWriter with_range(const KeyRange& range) {
  MessageWriter writer;
  writer.bytes(1, range.key).bytes(2, range.end);
  return writer;
}

std::string range_request(const Read& what) {
  MessageWriter writer = with_range(what.range);
  writer.number(3, what.limit);
  if (what.order != Order::by_key) {
    writer.number(5, what.order == Order::oldest_first ? sort_ascending : sort_descending).number(6, sort_by_created);
  }
  writer.flag(8, what.keys_only);
  if (what.created_before != 0) writer.number(13, what.created_before - 1);
  return writer.take();
}

// One of several kinds, in the list of that field.
std::string operation(std::uint32_t list, std::uint32_t kind, std::string_view request) {
  return MessageWriter().message(list, MessageWriter().message(kind, request).take()).take();
}

constexpr std::uint32_t kind_range = 1;
constexpr std::uint32_t kind_put = 2;
constexpr std::uint32_t kind_remove = 3;
constexpr std::uint32_t kind_transaction = 4;
constexpr std::uint32_t list_conditions = 1;
constexpr std::uint32_t list_then = 2;
constexpr std::uint32_t list_else = 3;

Failure no_answer(std::string_view what) {
  return {errc::protocol, "unexpected answer from etcd to " + std::string(what)};
}

// Calls f for each field, which reads it, and answers whether all of it was a message.
template <class F>
bool each_field(std::string_view text, F&& f) {
  MessageReader reader(text);
  while (reader.next()) {
    if (!f(reader)) return false;
  }
  return !reader.broken();
}

bool read_header(std::string_view text, Header& header) {
  return each_field(text, [&](MessageReader& reader) {
    if (reader.field() == 1) header.cluster = reader.number();
    if (reader.field() == 3) header.revision = reader.signed_number();
    if (reader.field() == 4) header.term = reader.number();
    return true;
  });
}

bool read_key(std::string_view text, KeyValue& key) {
  return each_field(text, [&](MessageReader& reader) {
    if (reader.field() == 1) key.key = reader.bytes();
    if (reader.field() == 2) key.created = reader.signed_number();
    if (reader.field() == 5) key.value = reader.bytes();
    if (reader.field() == 6) key.lease = reader.signed_number();
    return true;
  });
}

bool read_range(std::string_view text, StepAnswer& step) {
  return each_field(text, [&](MessageReader& reader) {
    if (reader.field() == 2) return read_key(reader.bytes(), step.keys.emplace_back());
    if (reader.field() == 3) step.more = reader.number() != 0;
    return true;
  });
}

bool read_removal(std::string_view text, StepAnswer& step) {
  return each_field(text, [&](MessageReader& reader) {
    if (reader.field() == 2) step.removed = reader.signed_number();
    return true;
  });
}

bool read_step(std::string_view text, StepAnswer& step) {
  return each_field(text, [&](MessageReader& reader) {
    if (reader.field() == kind_range) return read_range(reader.bytes(), step);
    if (reader.field() == kind_remove) return read_removal(reader.bytes(), step);
    return true;
  });
}

bool read_answer(std::string_view text, TransactionAnswer& answer, const Steps& steps) {
  const bool read = each_field(text, [&](MessageReader& reader) {
    if (reader.field() == 1) return read_header(reader.bytes(), answer.header);
    if (reader.field() == 2) answer.held = reader.number() != 0;
    if (reader.field() == 3) return read_step(reader.bytes(), answer.steps.emplace_back());
    return true;
  });
  return read && answer.steps.size() == (answer.held ? steps.if_held : steps.otherwise);
}

}  // namespace

Header read_header_of(std::string_view answer) {
  Header header;
  (void)each_field(answer, [&](MessageReader& reader) {  // its reader complains of what is broken
    return reader.field() != 1 || read_header(reader.bytes(), header);
  });
  return header;
}

KeyRange beginning_with(std::string prefix) {
  std::string end = prefix;
  while (!end.empty() && end.back() == '\xff') end.pop_back();
  if (end.empty()) {
    const std::string zero(1, '\0');  // as a key the first of all, as an end that of all keys
    if (prefix.empty()) prefix = zero;
    return {std::move(prefix), zero};
  }
  end.back() = static_cast<char>(static_cast<unsigned char>(end.back()) + 1);
  return {std::move(prefix), std::move(end)};
}

// --- Transactions ----------------------------------------------------------------------------------------------------

Transaction& Transaction::if_created(const KeyRange& range, std::int64_t revision) {
  conditions_ += MessageWriter()
                     .message(list_conditions, MessageWriter()
                                                   .number(2, compare_created)
                                                   .bytes(3, range.key)
                                                   .number(5, revision)
                                                   .bytes(64, range.end)
                                                   .take())
                     .take();
  return *this;
}

Transaction& Transaction::put(const std::string& key, std::string_view value, std::int64_t lease) {
  ++steps_.if_held;
  then_ += operation(list_then, kind_put, MessageWriter().bytes(1, key).bytes(2, value).number(3, lease).take());
  return *this;
}

Transaction& Transaction::remove(const KeyRange& range) {
  ++steps_.if_held;
  removes_ = true;
  then_ += operation(list_then, kind_remove, with_range(range).take());
  return *this;
}

Transaction& Transaction::read(const Read& what) {
  ++steps_.if_held;
  then_ += operation(list_then, kind_range, range_request(what));
  return *this;
}

Transaction& Transaction::else_read(const Read& what) {
  ++steps_.otherwise;
  else_ += operation(list_else, kind_range, range_request(what));
  return *this;
}

Result<TransactionAnswer> read_transaction(std::string_view text, const Steps& steps) {
  TransactionAnswer answer;
  if (!read_answer(text, answer, steps) || answer.header.revision <= 0) return no_answer("a transaction");
  return answer;
}

std::string together(const std::vector<Transaction>& transactions) {
  std::string request;
  for (const Transaction& each : transactions) request += operation(list_then, kind_transaction, each.request());
  return request;
}

Result<std::vector<TransactionAnswer>> read_together(std::string_view text,
                                                     const std::vector<Transaction>& transactions) {
  Header header;
  std::vector<TransactionAnswer> answers;
  const auto read_one = [&](MessageReader& reader) {
    if (reader.field() != kind_transaction || answers.size() == transactions.size()) return false;
    const Steps& steps = transactions[answers.size()].steps();
    return read_answer(reader.bytes(), answers.emplace_back(), steps);
  };
  const bool read = each_field(text, [&](MessageReader& reader) {
    if (reader.field() == 1) return read_header(reader.bytes(), header);
    return reader.field() != 3 || each_field(reader.bytes(), read_one);
  });
  if (!read || answers.size() != transactions.size() || header.revision <= 0) return no_answer("transactions");
  for (TransactionAnswer& each : answers) each.header = header;
  return answers;
}

// --- Leases ----------------------------------------------------------------------------------------------------------

std::string lease_grant(std::int64_t id, std::int64_t seconds) {
  return MessageWriter().number(1, seconds).number(2, id).take();
}

std::string lease_request(std::int64_t id) {
  return MessageWriter().number(1, id).take();
}

Result<LeaseAnswer> read_lease(std::string_view text) {
  LeaseAnswer answer;
  const bool read = each_field(text, [&](MessageReader& reader) {
    if (reader.field() == 1) return read_header(reader.bytes(), answer.header);
    if (reader.field() == 2) answer.id = reader.signed_number();
    if (reader.field() == 3) answer.seconds = reader.signed_number();
    return true;
  });
  if (!read || answer.id == 0) return no_answer("a lease request");
  return answer;
}

// --- Watches ---------------------------------------------------------------------------------------------------------

std::string watch_create(std::int64_t id, const KeyRange& range, bool puts) {
  MessageWriter writer = with_range(range);
  writer.bytes(5, puts ? std::string_view() : std::string_view(no_puts)).number(7, id);
  return MessageWriter().message(1, writer.take()).take();
}

std::string watch_cancel(std::int64_t id) {
  return MessageWriter().message(2, MessageWriter().number(1, id).take()).take();
}

Result<WatchAnswer> read_watch(std::string_view text) {
  WatchAnswer answer;
  const bool read = each_field(text, [&](MessageReader& reader) {
    if (reader.field() == 1) return read_header(reader.bytes(), answer.header);
    if (reader.field() == 2) answer.id = reader.signed_number();
    if (reader.field() == 3) answer.created = reader.number() != 0;
    if (reader.field() == 4) answer.canceled = reader.number() != 0;
    if (reader.field() == 5) answer.compacted = reader.signed_number();
    if (reader.field() == 6) answer.reason = reader.bytes();
    if (reader.field() == 11) {
      (void)reader.bytes();
      ++answer.events;
    }
    return true;
  });
  if (!read) return no_answer("a watch");
  return answer;
}

// --- The rest --------------------------------------------------------------------------------------------------------

std::string authenticate(std::string_view user, std::string_view password) {
  return MessageWriter().bytes(1, user).bytes(2, password).take();
}

Result<std::string> read_authenticate(std::string_view text) {
  std::string token;
  const bool read = each_field(text, [&](MessageReader& reader) {
    if (reader.field() == 2) token = reader.bytes();
    return true;
  });
  if (!read || token.empty()) return no_answer("a login");
  return token;
}

Result<StatusAnswer> read_status(std::string_view text) {
  StatusAnswer answer;
  const bool read = each_field(text, [&](MessageReader& reader) {
    if (reader.field() == 1) return read_header(reader.bytes(), answer.header);
    if (reader.field() == 2) answer.version = reader.bytes();
    if (reader.field() == 3) answer.database_size = reader.signed_number();
    if (reader.field() == 4) answer.leader = reader.number();
    if (reader.field() == 8) answer.errors.emplace_back(reader.bytes());
    return true;
  });
  if (!read || answer.version.empty()) return no_answer("a status request");
  return answer;
}

Result<std::vector<Alarm>> read_alarms(std::string_view text) {
  std::vector<Alarm> alarms;
  const auto read_alarm = [&](MessageReader& reader) {
    if (reader.field() != 2) return true;
    const std::uint64_t kind = reader.number();
    alarms.push_back(kind == 1 ? Alarm::no_space : kind == 2 ? Alarm::corrupt : Alarm::none);
    return true;
  };
  const bool read = each_field(
      text, [&](MessageReader& reader) { return reader.field() != 2 || each_field(reader.bytes(), read_alarm); });
  if (!read) return no_answer("an alarm request");
  return alarms;
}

}  // namespace dlock::etcd
