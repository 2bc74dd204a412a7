// etcd's requests and answers (its rpc.proto and kv.proto, version 3.4), as far as locks need them. No I/O.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <dlock/spi/result.hpp>

namespace dlock::etcd {

// --- Methods ---------------------------------------------------------------------------------------------------------

inline constexpr std::string_view method_transaction = "/etcdserverpb.KV/Txn";
inline constexpr std::string_view method_lease_grant = "/etcdserverpb.Lease/LeaseGrant";
inline constexpr std::string_view method_lease_revoke = "/etcdserverpb.Lease/LeaseRevoke";
inline constexpr std::string_view method_lease_keep_alive = "/etcdserverpb.Lease/LeaseKeepAlive";
inline constexpr std::string_view method_watch = "/etcdserverpb.Watch/Watch";
inline constexpr std::string_view method_authenticate = "/etcdserverpb.Auth/Authenticate";
inline constexpr std::string_view method_status = "/etcdserverpb.Maintenance/Status";
inline constexpr std::string_view method_alarm = "/etcdserverpb.Maintenance/Alarm";

// --- Keys ------------------------------------------------------------------------------------------------------------

// From `key` up to `end`, which is not one of them; where `end` is empty: only `key`.
struct KeyRange {
  std::string key;
  std::string end = {};
  [[nodiscard]] bool operator==(const KeyRange&) const = default;
};
// All keys that begin with it; an empty one: all keys.
[[nodiscard]] KeyRange beginning_with(std::string prefix);

struct KeyValue {
  std::string key;
  std::string value;
  std::int64_t created = 0;  // the revision
  std::int64_t lease = 0;
};

// What is in every answer.
struct Header {
  std::uint64_t cluster = 0;
  std::int64_t revision = 0;
  std::uint64_t term = 0;  // of Raft, as the member knew it
};

// Of any answer. All zero if there is none.
[[nodiscard]] Header read_header_of(std::string_view answer);

// --- Transactions ----------------------------------------------------------------------------------------------------

enum class Order { by_key, newest_first, oldest_first };

struct Read {
  KeyRange range;
  std::int64_t limit = 0;           // 0: none
  Order order = Order::by_key;      // by the revision that created them
  std::int64_t created_before = 0;  // the same; 0: whenever
  bool keys_only = false;
};

// How many steps a transaction has.
struct Steps {
  std::size_t if_held = 0;
  std::size_t otherwise = 0;
};

// Conditions, and what is done if all of them hold, or else; each in the order given, all at once. A read sees what was
// put before it. etcd takes 128 of each.
class Transaction {
 public:
  // No key in the range.
  Transaction& if_absent(const KeyRange& range) { return if_created(range, 0); }
  // All keys in the range, if there are any, by that revision.
  Transaction& if_created(const KeyRange& range, std::int64_t revision);

  Transaction& put(const std::string& key, std::string_view value, std::int64_t lease);
  Transaction& remove(const KeyRange& range);
  Transaction& read(const Read& what);
  Transaction& else_read(const Read& what);

  // Whether keys go.
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

// What one step of a transaction answered: keys that were read, or how many were removed.
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
// errc::protocol for what is no answer to a transaction of so many steps.
[[nodiscard]] Result<TransactionAnswer> read_transaction(std::string_view text, const Steps& steps);

// Several as one: all conditions are looked at first, then all is done, in the order given and in one revision.
[[nodiscard]] std::string together(const std::vector<Transaction>& transactions);
// The answers, each with the header of all. errc::protocol as above.
[[nodiscard]] Result<std::vector<TransactionAnswer>> read_together(std::string_view text,
                                                                   const std::vector<Transaction>& transactions);

// --- Leases ----------------------------------------------------------------------------------------------------------

[[nodiscard]] std::string lease_grant(std::int64_t id, std::int64_t seconds);
// Also of a keep-alive and a revocation.
[[nodiscard]] std::string lease_request(std::int64_t id);

struct LeaseAnswer {
  Header header;
  std::int64_t id = 0;
  std::int64_t seconds = 0;  // 0 or less: there is no such lease
};
// Of a grant or a keep-alive.
[[nodiscard]] Result<LeaseAnswer> read_lease(std::string_view text);

// --- Watches ---------------------------------------------------------------------------------------------------------

// From now on. puts: keys that are put are reported as well, not only those that are deleted.
[[nodiscard]] std::string watch_create(std::int64_t id, const KeyRange& range, bool puts);
[[nodiscard]] std::string watch_cancel(std::int64_t id);

struct WatchAnswer {
  Header header;
  std::int64_t id = 0;
  bool created = false;
  bool canceled = false;
  std::int64_t compacted = 0;  // the revision from which on there is a history; 0: that was not the trouble
  std::string reason;          // of the cancellation
  std::size_t events = 0;
};
[[nodiscard]] Result<WatchAnswer> read_watch(std::string_view text);

// --- The rest --------------------------------------------------------------------------------------------------------

[[nodiscard]] std::string authenticate(std::string_view user, std::string_view password);
// The token.
[[nodiscard]] Result<std::string> read_authenticate(std::string_view text);

struct StatusAnswer {
  Header header;
  std::string version;
  std::int64_t database_size = 0;
  std::uint64_t leader = 0;  // 0: none
  std::vector<std::string> errors;
};
[[nodiscard]] Result<StatusAnswer> read_status(std::string_view text);

// The alarms that there are.
enum class Alarm { none, no_space, corrupt };
[[nodiscard]] Result<std::vector<Alarm>> read_alarms(std::string_view text);

}  // namespace dlock::etcd
