// Messages in bytes, and what the statuses of calls mean.
#include "backends/etcd/wire/messages.hpp"

#include <gtest/gtest.h>

#include <functional>

#include "backends/etcd/connection/failures.hpp"
#include "backends/etcd/wire/protobuf.hpp"

// Expected bytes are written by hand, from the numbers of the fields in etcd's rpc.proto and kv.proto: a tag is the
// number times 8, plus 2 where a length follows.

namespace dlock::etcd {
namespace {

using namespace std::string_literals;

// A message in a message, shorter than 128 bytes.
std::string sub(char tag, const std::string& body) {
  return std::string(1, tag) + static_cast<char>(body.size()) + body;
}

constexpr std::int64_t lease_id = 0x1234;
const std::string lease_varint = "\xb4\x24"s;  // of 0x1234

TEST(EtcdProtobuf, ZeroOrEmpty_IsLeftOut) {
  EXPECT_EQ(MessageWriter().number(1, std::uint64_t{0}).bytes(2, "").flag(3, false).take(), "");
  EXPECT_EQ(MessageWriter().message(4, "").take(), "\x22\0"s);
  EXPECT_EQ(MessageWriter().flag(3, true).take(), "\x18\x01");
}

TEST(EtcdProtobuf, InvalidBytes_BreakTheMessage) {
  for (const std::string& text : {
           "\x08"s,                                          // a number is missing
           "\x08\x96"s,                                      // cut off in one
           "\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff"s,  // one that never ends
           "\x12\x05" + "test"s,                             // shorter than it says
           "\x12\xff\xff\xff\xff\xff\xff\xff\xff\x7f"s,      // much shorter
           "\x00\x01"s,                                      // field 0
           "\x0b"s,                                          // a group
           "\x0f"s,                                          // a type that there is not
           "\x80\x80\x80\x80\x80\x80\x01\x01"s,              // a field beyond 32 bits
           "\x09" + "1234"s,
       }) {
    MessageReader reader(text);
    while (reader.next()) {
    }
    EXPECT_TRUE(reader.broken()) << testing::PrintToString(text);
    EXPECT_FALSE(reader.next());
  }
}

TEST(EtcdRanges, Prefix_EndsBehindItsLastKey) {
  const std::string zero(1, '\0');
  const std::vector<std::pair<std::string, KeyRange>> cases = {
      {"dlock/", {"dlock/", "dlock0"}},
      {"a", {"a", "b"}},
      {"a\x7f", {"a\x7f", "a\x80"}},
      {"a\xff", {"a\xff", "b"}},
      {"a\xfe\xff\xff", {"a\xfe\xff\xff", "a\xff"}},
      {"a\0"s, {"a\0"s, "a\x01"}},
      {"\xff\xff", {"\xff\xff", zero}},  // an end of one zero byte: all keys from there on
      {"", {zero, zero}},                // all keys
  };
  for (const auto& [prefix, range] : cases) {
    EXPECT_EQ(beginning_with(prefix).key, range.key) << testing::PrintToString(prefix);
    EXPECT_EQ(beginning_with(prefix).end, range.end) << testing::PrintToString(prefix);
  }
}

TEST(EtcdTransactions, Read_HasALimitAndAnOrder) {
  // RequestOp.request_range 1, RangeRequest: key 1, range_end 2, limit 3, sort_order 5 (ASCEND 1, DESCEND 2),
  // sort_target 6 (CREATE 2), keys_only 8, max_create_revision 13.
  const auto of = [](const Read& what) { return Transaction().read(what).request(); };
  const auto range = [](const std::string& body) { return sub('\x12', sub('\x0a', body)); };
  EXPECT_EQ(of({.range = {"k", "l"}, .order = Order::oldest_first}), range("\x0a\x01k\x12\x01l\x28\x01\x30\x02"));
  EXPECT_EQ(
      of({.range = {"k", "l"}, .limit = 2, .order = Order::newest_first, .created_before = 301, .keys_only = true}),
      range("\x0a\x01k\x12\x01l\x18\x02\x28\x02\x30\x02\x40\x01\x68\xac\x02"))
      << "etcd's limit of the revision is one of the range";
}

// ResponseHeader: cluster_id 1, member_id 2, revision 3, raft_term 4.
const std::string header = sub('\x0a', "\x08\x07\x10\x63\x18\xac\x02\x20\x03");

TEST(EtcdTransactions, OtherNumberOfSteps_IsRefused) {
  const std::string step = sub('\x1a', sub('\x0a', "\x20\x01"));
  const std::string held = header + "\x10\x01";
  EXPECT_TRUE(read_transaction(held, {0}).ok());
  EXPECT_TRUE(read_transaction(held + step, {1, 2}).ok());
  EXPECT_FALSE(read_transaction(held + step, {2, 1}).ok());
  EXPECT_FALSE(read_transaction(held + step + step, {1}).ok());
  EXPECT_FALSE(read_transaction(held, {1}).ok());
  const auto otherwise = read_transaction(header + step + step, {1, 2});
  ASSERT_TRUE(otherwise.ok());
  EXPECT_FALSE(otherwise.value().held);
  EXPECT_FALSE(read_transaction(header + step, {1, 2}).ok());
  EXPECT_FALSE(read_transaction(header + step, {1}).ok());
}

TEST(EtcdAnswers, Lease_MayHaveNegativeNumbersAndOtherFields) {
  // ID 2, TTL 3; LeaseGrantResponse.error 4 and LeaseTimeToLiveResponse.grantedTTL 4, keys 5.
  for (const auto& [rest, seconds] : std::vector<std::pair<std::string, std::int64_t>>{
           {"\x18\x1d\x20\x1e\x2a\x01k", 29}, {"", 0}, {"\x18\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", -1}}) {
    const auto answer = read_lease(header + "\x10" + lease_varint + rest);
    ASSERT_TRUE(answer.ok());
    EXPECT_EQ(answer.value().header.cluster, 7U);
    EXPECT_EQ(answer.value().header.revision, 300);
    EXPECT_EQ(answer.value().header.term, 3U);
    EXPECT_EQ(answer.value().id, lease_id);
    EXPECT_EQ(answer.value().seconds, seconds);
  }
}

TEST(EtcdAnswers, Status_IsRead) {
  // StatusResponse: version 2, dbSize 3, leader 4, raftIndex 5, raftTerm 6, raftAppliedIndex 7, errors 8.
  const auto status = read_status(header + "\x12\x06" + "3.4.23" +
                                  "\x18\xac\x02\x20\x09\x28\x01\x30\x02\x38\x03\x42\x03one\x42\x03two");
  ASSERT_TRUE(status.ok());
  EXPECT_EQ(status.value().version, "3.4.23");
  EXPECT_EQ(status.value().database_size, 300);
  EXPECT_EQ(status.value().leader, 9U);
}

TEST(EtcdAnswers, Alarms_AreRead) {
  // AlarmResponse: alarms 2; AlarmMember: memberID 1, alarm 2 (NOSPACE 1, CORRUPT 2).
  EXPECT_TRUE(read_alarms(header).value().empty());
  const auto alarms = read_alarms(header + sub('\x12', "\x08\x09\x10\x01") + sub('\x12', "\x08\x09\x10\x02") +
                                  sub('\x12', "\x08\x09\x10\x07"));
  ASSERT_TRUE(alarms.ok());
  EXPECT_EQ(alarms.value(), (std::vector<Alarm>{Alarm::no_space, Alarm::corrupt, Alarm::none}));
}

struct Reader {
  const char* what;
  std::function<Result<bool>(std::string_view)> read;
  std::vector<std::string> refused;
};

template <class T>
Result<bool> whether(const Result<T>& answer) {
  if (!answer.ok()) return answer.failure();
  return true;
}

// Shows: nothing-guessed
// Hazard: a hostile server: limits
TEST(EtcdAnswers, InvalidBytes_BreakTheProtocol) {
  const std::string lease = "\x10" + lease_varint;
  const std::string held = header + "\x10\x01";
  const auto step = [&held](const std::string& body) { return held + sub('\x1a', body); };
  const auto range = [&step](const std::string& body) { return step(sub('\x0a', body)); };
  const auto key = [&range](const std::string& body) { return range(sub('\x12', body)); };
  const std::vector<Reader> readers = {
      {"a transaction",
       [](std::string_view text) {
         return whether(read_transaction(text, {1, 0}));
       },
       {
           "", sub('\x0a', "\x08\x07"),                                  // no revision
           sub('\x0a', "\x18\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"),  // before the first
           sub('\x0a', sub('\x1a', "x")),                                // a revision that is no number
           "\x08\x01",                                                   // a header that is none
           header + "\x10",                                              // cut off
           header + "\x12\x01\x01",                                      // whether it held, as bytes
           held + "\x18\x01",                                            // a step that is a number
           step("\x08\x01"), step("\x18\x01"),                           // a range and a removal that are numbers
           range("\x10\x01"), range("\x0b"),                             // keys that are numbers, or broken
           key("\x08\x01"), key("\x0a\x05k"),                            // a key that is a number, or cut off
           key("\x12\x01x"),                                             // a revision that is a text
           step(sub('\x1a', sub('\x12', "x"))),                          // how many were removed, as a text
       }},
      {"a lease request",
       [](std::string_view text) { return whether(read_lease(text)); },
       {"", header, header + "\x12\x01x", header + lease + "\x1a\x01x", lease + "\x18", "\x08\x01" + lease}},
      {"a watch",
       [](std::string_view text) { return whether(read_watch(text)); },
       {"\x08\x01", "\x12\x01x", "\x1a\x01x", "\x22\x01x", "\x2a\x01x", "\x58\x01", header + "\x5a\x09x"}},
      {"a login",
       [](std::string_view text) { return whether(read_authenticate(text)); },
       {"", header, "\x10\x01", "\x12\x05to", "\x12\x02to\x18"}},
      {"a status request",
       [](std::string_view text) { return whether(read_status(text)); },
       {"", header, "\x10\x03", "\x12\x01x\x1a\x01x", "\x12\x01x\x22\x01x"}},
      {"an alarm request",
       [](std::string_view text) { return whether(read_alarms(text)); },
       {"\x10\x01", sub('\x12', "\x12\x01x"), sub('\x12', "\x10"), "\x12"}},
  };
  for (const Reader& reader : readers) {
    for (const std::string& text : reader.refused) {
      const auto answer = reader.read(text);
      ASSERT_FALSE(answer.ok()) << reader.what << ": " << testing::PrintToString(text);
      EXPECT_EQ(answer.failure().code, errc::protocol);
      EXPECT_EQ(answer.failure().detail, "unexpected answer from etcd to "s + reader.what);
    }
  }
}

// Whatever later versions add.
TEST(EtcdAnswers, UnknownFields_AreIgnored) {
  // Fields 1000 and 1001, of each type.
  const std::string more = "\xc2\x3e\x03new\xc8\x3e\x01\xc1\x3e" + "12345678"s + "\xc5\x3e" + "1234";
  const std::string with_more = sub('\x0a', "\x18\xac\x02" + more);
  EXPECT_TRUE(read_transaction(with_more + "\x10\x01" + sub('\x1a', sub('\x0a', more) + more) + more, {1}).ok());
  EXPECT_TRUE(read_lease(with_more + "\x10\x01" + more).ok());
  EXPECT_TRUE(read_watch(with_more + more).ok());
  EXPECT_TRUE(read_authenticate(with_more + "\x12\x01t" + more).ok());
  EXPECT_TRUE(read_status(with_more + "\x12\x01v" + more).ok());
  EXPECT_TRUE(read_alarms(with_more + sub('\x12', more) + more).ok());
}

struct StatusRow {
  int code;
  const char* message;
  Outcome outcome;
  errc failure;
};

void expect_rows(const std::vector<StatusRow>& rows) {
  for (const StatusRow& row : rows) {
    const GrpcStatus status{.code = row.code, .message = row.message};
    EXPECT_EQ(outcome_of(status), row.outcome) << row.code << ' ' << row.message;
    const Failure failure = to_failure(status, "h1:2379");
    EXPECT_EQ(failure.code, row.failure) << row.code << ' ' << row.message;
    EXPECT_EQ(failure.detail, "h1:2379: " + std::string(row.message));
  }
}

TEST(EtcdFailures, Status_SaysWhetherTheCallMayHaveHadAnEffect) {
  EXPECT_EQ(outcome_of({.code = 0, .message = "etcdserver: requested lease not found"}), Outcome::success);
  EXPECT_FALSE(to_failure({.code = 0, .message = "etcdserver: requested lease not found"}, "h").code);
  expect_rows({
      // A member that cannot answer: the call may have been carried out, or may still be.
      {14, "etcdserver: leader changed", Outcome::unavailable, errc::ambiguous},
      {14, "etcdserver: request timed out, possibly due to previous leader failure", Outcome::unavailable,
       errc::ambiguous},
      {14, "transport is closing", Outcome::unavailable, errc::ambiguous},
      {14, "a call was aborted: INTERNAL_ERROR", Outcome::unavailable, errc::ambiguous},
      {4, "context deadline exceeded", Outcome::unavailable, errc::ambiguous},
      {2, "context deadline exceeded", Outcome::unavailable, errc::ambiguous},
      {2, "etcdserver: server stopped", Outcome::unavailable, errc::ambiguous},
      {1, "context canceled", Outcome::unavailable, errc::ambiguous},
      // The session has ended.
      {5, "etcdserver: requested lease not found", Outcome::no_lease, errc::lost},
      {2, "etcdserver: requested lease not found", Outcome::no_lease, errc::lost},
      // Missing rights.
      {3, "etcdserver: authentication failed, invalid user ID or password", Outcome::refused, errc::access_denied},
      {7, "etcdserver: permission denied", Outcome::refused, errc::access_denied},
      // A token that is not known any more, or the first one where authentication was switched on.
      {16, "etcdserver: invalid auth token", Outcome::unauthorized, errc::access_denied},
      {3, "etcdserver: revision of auth store is old", Outcome::unauthorized, errc::access_denied},
      {3, "etcdserver: user name is empty", Outcome::unauthorized, errc::access_denied},
      // An administrator can change it.
      {8, "etcdserver: mvcc: database space exceeded", Outcome::overloaded, errc::unavailable},
      {8, "etcdserver: too many requests", Outcome::overloaded, errc::unavailable},
      {15, "etcdserver: corrupt cluster", Outcome::overloaded, errc::unavailable},
      // The request is wrong.
      {3, "etcdserver: duplicate key given in txn request", Outcome::refused, errc::protocol},
      {11, "etcdserver: mvcc: required revision has been compacted", Outcome::refused, errc::protocol},
      {12, "unknown service etcdserverpb.Lease", Outcome::refused, errc::unsupported},
  });
  // Unknown codes are temporary.
  for (const int code : {5, 6, 9, 10, 13, 15, 99}) {
    expect_rows({{code, "from the future", Outcome::unavailable, errc::ambiguous}});
  }
}

TEST(EtcdFailures, CallNotBegun_IsUnavailable) {
  expect_rows({
      {14, "etcdserver: no leader", Outcome::unavailable, errc::unavailable},
      {14, "etcdserver: too many requests", Outcome::unavailable, errc::unavailable},
      {14, "etcdserver: rpc not supported for learner", Outcome::unavailable, errc::unavailable},
      {9, "etcdserver: rpc not supported for learner", Outcome::unavailable, errc::unavailable},
      {14, "etcdserver: not capable", Outcome::unavailable, errc::unavailable},
  });
  const GrpcStatus refused{.code = 14, .message = "a call was aborted: REFUSED_STREAM", .not_carried_out = true};
  EXPECT_EQ(outcome_of(refused), Outcome::unavailable);
  EXPECT_EQ(to_failure(refused, "h").code, errc::unavailable);
}

TEST(EtcdFailures, AuthenticationOff_NeedsNoLogin) {
  EXPECT_TRUE(is_without_logins({.code = 9, .message = "etcdserver: authentication is not enabled"}));
  EXPECT_FALSE(is_without_logins({.code = 9, .message = "etcdserver: root user does not exist"}));
}

}  // namespace
}  // namespace dlock::etcd
