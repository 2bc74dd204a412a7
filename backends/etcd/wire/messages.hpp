// etcd's requests and answers (its rpc.proto and kv.proto, version 3.4), as far as locks need them. No I/O.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <dlock/spi/result.hpp>

namespace dlock::etcd {

inline constexpr std::string_view method_transaction = "/etcdserverpb.KV/Txn";
inline constexpr std::string_view method_lease_grant = "/etcdserverpb.Lease/LeaseGrant";
inline constexpr std::string_view method_lease_revoke = "/etcdserverpb.Lease/LeaseRevoke";
inline constexpr std::string_view method_lease_keep_alive = "/etcdserverpb.Lease/LeaseKeepAlive";
inline constexpr std::string_view method_watch = "/etcdserverpb.Watch/Watch";
inline constexpr std::string_view method_authenticate = "/etcdserverpb.Auth/Authenticate";
inline constexpr std::string_view method_status = "/etcdserverpb.Maintenance/Status";
inline constexpr std::string_view method_alarm = "/etcdserverpb.Maintenance/Alarm";

// --- Answers in general ----------------------------------------------------------------------------------------------

// Every answer has one.
struct Header {
  std::uint64_t cluster = 0;
  std::int64_t revision = 0;
  std::uint64_t term = 0;  // of Raft, as far as the member knows
};

// All zero if the answer has no header.
[[nodiscard]] Header read_header_of(std::string_view answer);

// The answer to a call, read. Each reader returns errc::protocol if the text is not an answer to its request.
template <class Answer>
[[nodiscard]] Result<Answer> read_answer(const Result<std::string>& text, Result<Answer> (*read)(std::string_view)) {
  return text.ok() ? read(text.value()) : Result<Answer>(text.failure());
}

// --- Keys ------------------------------------------------------------------------------------------------------------

// The keys from `key` up to `end`, which is excluded. If `end` is empty, only `key`.
struct KeyRange {
  std::string key;
  std::string end = {};
  [[nodiscard]] bool operator==(const KeyRange&) const = default;
};
// All keys that begin with the prefix. An empty prefix: all keys.
[[nodiscard]] KeyRange beginning_with(std::string prefix);

struct KeyValue {
  std::string key;
  std::string value;
  std::int64_t created = 0;  // the revision
  std::int64_t lease = 0;
};

// --- Transactions ----------------------------------------------------------------------------------------------------

enum class Order { by_key, newest_first, oldest_first };

struct Read {
  KeyRange range;
  std::int64_t limit = 0;           // 0: none
  Order order = Order::by_key;      // by the revision that created them
  std::int64_t created_before = 0;  // a revision; 0: any
  bool keys_only = false;
};

// How many steps a transaction has.
struct Steps {
  std::size_t if_held = 0;
  std::size_t otherwise = 0;
};

// Conditions, the steps if all of them hold, and the steps otherwise, each in the order given. etcd applies the whole
// transaction atomically. A read sees earlier puts of its transaction. etcd accepts 128 of each.
class Transaction {
 public:
  Transaction& if_absent(const KeyRange& range) { return if_created(range, 0); }
  // That revision created all keys in the range. 0: there is none.
  Transaction& if_created(const KeyRange& range, std::int64_t revision);

  Transaction& put(const std::string& key, std::string_view value, std::int64_t lease);
  Transaction& remove(const KeyRange& range);
  Transaction& read(const Read& what);
  Transaction& else_read(const Read& what);

  // Whether it removes keys.
  [[nodiscard]] bool removes() const noexcept { return removes_; }
  [[nodiscard]] std::string request() const { return conditions_ + then_ + else_; }
  [[nodiscard]] const Steps& steps() const noexcept { return steps_; }

 private:
  std::string conditions_;
  std::string then_;
  std::string else_;
  Steps steps_;
  bool removes_ = false;
};

// The keys that a step of a transaction read, or how many it removed.
struct StepAnswer {
  std::vector<KeyValue> keys;
  bool more = false;  // than the limit
  std::int64_t removed = 0;
};
struct TransactionAnswer {
  Header header;
  bool held = false;  // the conditions
  std::vector<StepAnswer> steps;
};
[[nodiscard]] Result<TransactionAnswer> read_transaction(std::string_view text, const Steps& steps);

// Several transactions as one. etcd evaluates all conditions first, then applies the steps in the order given, in one
// revision.
[[nodiscard]] std::string together(const std::vector<Transaction>& transactions);
// The answers, each with the header of the whole.
[[nodiscard]] Result<std::vector<TransactionAnswer>> read_together(std::string_view text,
                                                                   const std::vector<Transaction>& transactions);

// --- Leases ----------------------------------------------------------------------------------------------------------

[[nodiscard]] std::string lease_grant(std::int64_t id, std::int64_t seconds);
// A keep-alive or a revocation.
[[nodiscard]] std::string lease_request(std::int64_t id);

// The answer to a grant or a keep-alive.
struct LeaseAnswer {
  Header header;
  std::int64_t id = 0;
  std::int64_t seconds = 0;  // 0 or less: there is no such lease
};
[[nodiscard]] Result<LeaseAnswer> read_lease(std::string_view text);

// --- Watches ---------------------------------------------------------------------------------------------------------

// From now on. puts: the watch reports puts besides deletions.
[[nodiscard]] std::string watch_create(std::int64_t id, const KeyRange& range, bool puts);
[[nodiscard]] std::string watch_cancel(std::int64_t id);

struct WatchAnswer {
  Header header;
  std::int64_t id = 0;
  bool created = false;
  bool canceled = false;
  std::int64_t compacted = 0;  // the first revision of the history that is left, if that is why it was cancelled
  std::size_t events = 0;
};
[[nodiscard]] Result<WatchAnswer> read_watch(std::string_view text);

// --- Login, diagnosis ------------------------------------------------------------------------------------------------

[[nodiscard]] std::string authenticate(std::string_view user, std::string_view password);
// Returns the token.
[[nodiscard]] Result<std::string> read_authenticate(std::string_view text);

struct StatusAnswer {
  std::string version;
  std::int64_t database_size = 0;
  std::uint64_t leader = 0;  // 0: none
};
[[nodiscard]] Result<StatusAnswer> read_status(std::string_view text);

// The raised alarms.
enum class Alarm : std::uint8_t { none, no_space, corrupt };
[[nodiscard]] Result<std::vector<Alarm>> read_alarms(std::string_view text);

}  // namespace dlock::etcd
