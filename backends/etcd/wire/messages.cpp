#include "backends/etcd/wire/messages.hpp"

#include <concepts>
#include <type_traits>
#include <utility>

#include "backends/etcd/wire/protobuf.hpp"

namespace dlock::etcd {

namespace {

// Numbers of etcd's enumerations.
constexpr std::uint64_t sort_ascending = 1;
constexpr std::uint64_t sort_descending = 2;
constexpr std::uint64_t sort_by_created = 2;
constexpr std::uint64_t compare_created = 1;
constexpr std::string_view no_puts("\0", 1);  // a packed list of filters

// Lists of a transaction, and the kinds of its operations.
constexpr std::uint32_t list_conditions = 1;
constexpr std::uint32_t list_then = 2;
constexpr std::uint32_t list_else = 3;
constexpr std::uint32_t kind_range = 1;
constexpr std::uint32_t kind_put = 2;
constexpr std::uint32_t kind_remove = 3;
constexpr std::uint32_t kind_transaction = 4;

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

std::string operation(std::uint32_t list, std::uint32_t kind, std::string_view request) {
  return MessageWriter().message(list, MessageWriter().message(kind, request).take()).take();
}

// --- Reading ---------------------------------------------------------------------------------------------------------

bool read(std::string_view text, Header& header);
bool read(std::string_view text, KeyValue& key);
bool read(std::string_view text, StepAnswer& step);

// The number of a field, and the variable to read it into: a number, text, message, or list of messages. Or a function
// that reads a nested message and returns whether it could.
template <class To>
struct Field {
  std::uint32_t number;
  To to;

  bool read_from(MessageReader& reader) const {
    using Value = std::remove_cvref_t<To>;
    if constexpr (std::predicate<Value, std::string_view>) {
      return to(reader.bytes());
    } else if constexpr (std::integral<Value>) {
      to = static_cast<Value>(reader.number());
    } else if constexpr (std::same_as<Value, std::string>) {
      to = reader.bytes();
    } else if constexpr (requires { to.emplace_back(); }) {
      return read(reader.bytes(), to.emplace_back());
    } else {
      return read(reader.bytes(), to);
    }
    return true;
  }
};
template <class To>
Field(std::uint32_t, To&&) -> Field<To>;

// Whether all of the text is a message. Skips unknown fields.
template <class... Fields>
bool read_fields(std::string_view text, const Fields&... fields) {
  MessageReader reader(text);
  while (reader.next()) {
    if (!((reader.field() != fields.number || fields.read_from(reader)) && ...)) return false;
  }
  return !reader.broken();
}

bool read(std::string_view text, Header& header) {
  return read_fields(text, Field{1, header.cluster}, Field{3, header.revision}, Field{4, header.term});
}

bool read(std::string_view text, KeyValue& key) {
  return read_fields(text, Field{1, key.key}, Field{2, key.created}, Field{5, key.value}, Field{6, key.lease});
}

bool read(std::string_view text, StepAnswer& step) {
  const auto range = [&step](std::string_view nested) {
    return read_fields(nested, Field{2, step.keys}, Field{3, step.more});
  };
  const auto removal = [&step](std::string_view nested) { return read_fields(nested, Field{2, step.removed}); };
  return read_fields(text, Field{kind_range, range}, Field{kind_remove, removal});
}

bool read_steps(std::string_view text, TransactionAnswer& answer, const Steps& steps) {
  const bool read = read_fields(text, Field{1, answer.header}, Field{2, answer.held}, Field{3, answer.steps});
  return read && answer.steps.size() == (answer.held ? steps.if_held : steps.otherwise);
}

// The answer, or errc::protocol.
template <class Answer>
Result<Answer> valid_or_refused(bool valid, Answer& answer, std::string_view what) {
  if (!valid) return Failure{errc::protocol, "unexpected answer from etcd to " + std::string(what)};
  return std::move(answer);
}

}  // namespace

Header read_header_of(std::string_view answer) {
  Header header;
  (void)read_fields(answer, Field{1, header});  // the reader of the answer reports a malformed one
  return header;
}

KeyRange beginning_with(std::string prefix) {
  std::string end = prefix;
  while (!end.empty() && end.back() == '\xff') end.pop_back();
  if (end.empty()) {
    const std::string zero(1, '\0');  // the first of all keys; as an end: after all keys
    if (prefix.empty()) prefix = zero;
    return {std::move(prefix), zero};
  }
  end.back() = static_cast<char>(static_cast<unsigned char>(end.back()) + 1);
  return {std::move(prefix), std::move(end)};
}

// --- Transactions ----------------------------------------------------------------------------------------------------

Transaction& Transaction::if_created(const KeyRange& range, std::int64_t revision) {
  MessageWriter compare;
  compare.number(2, compare_created).bytes(3, range.key).number(5, revision).bytes(64, range.end);
  conditions_ += MessageWriter().message(list_conditions, compare.take()).take();
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
  return valid_or_refused(read_steps(text, answer, steps) && answer.header.revision > 0, answer, "a transaction");
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
  const auto transaction = [&](std::string_view nested) {
    if (answers.size() == transactions.size()) return false;
    const Steps& expected = transactions[answers.size()].steps();
    return read_steps(nested, answers.emplace_back(), expected);
  };
  const auto step = [&](std::string_view nested) { return read_fields(nested, Field{kind_transaction, transaction}); };
  const bool read = read_fields(text, Field{1, header}, Field{3, step});
  for (TransactionAnswer& each : answers) each.header = header;
  return valid_or_refused(read && answers.size() == transactions.size() && header.revision > 0, answers,
                          "transactions");
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
  const bool read = read_fields(text, Field{1, answer.header}, Field{2, answer.id}, Field{3, answer.seconds});
  return valid_or_refused(read && answer.id != 0, answer, "a lease request");
}

// --- Watches ---------------------------------------------------------------------------------------------------------

std::string watch_create(std::int64_t id, const KeyRange& range, bool puts) {
  MessageWriter writer = with_range(range);
  writer.bytes(5, puts ? std::string_view() : no_puts).number(7, id);
  return MessageWriter().message(1, writer.take()).take();
}

std::string watch_cancel(std::int64_t id) {
  return MessageWriter().message(2, MessageWriter().number(1, id).take()).take();
}

Result<WatchAnswer> read_watch(std::string_view text) {
  WatchAnswer answer;
  const auto event = [&answer](std::string_view) { return ++answer.events != 0; };
  const bool read = read_fields(text, Field{1, answer.header}, Field{2, answer.id}, Field{3, answer.created},
                                Field{4, answer.canceled}, Field{5, answer.compacted}, Field{11, event});
  return valid_or_refused(read, answer, "a watch");
}

// --- Login, diagnosis ------------------------------------------------------------------------------------------------

std::string authenticate(std::string_view user, std::string_view password) {
  return MessageWriter().bytes(1, user).bytes(2, password).take();
}

Result<std::string> read_authenticate(std::string_view text) {
  std::string token;
  const bool read = read_fields(text, Field{2, token});
  return valid_or_refused(read && !token.empty(), token, "a login");
}

Result<StatusAnswer> read_status(std::string_view text) {
  StatusAnswer answer;
  const bool read =
      read_fields(text, Field{2, answer.version}, Field{3, answer.database_size}, Field{4, answer.leader});
  return valid_or_refused(read && !answer.version.empty(), answer, "a status request");
}

Result<std::vector<Alarm>> read_alarms(std::string_view text) {
  std::vector<Alarm> alarms;
  const auto alarm = [&alarms](std::string_view nested) {
    std::uint64_t kind = 0;
    const bool read = read_fields(nested, Field{2, kind});
    alarms.push_back(kind == 1 ? Alarm::no_space : kind == 2 ? Alarm::corrupt : Alarm::none);
    return read;
  };
  return valid_or_refused(read_fields(text, Field{2, alarm}), alarms, "an alarm request");
}

}  // namespace dlock::etcd
