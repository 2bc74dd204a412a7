#include "backends/etcd/connection/failures.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace dlock::etcd {
namespace {

struct Row {
  int code;
  const char* message;
  Outcome outcome;
  errc failure;
};

void expect_rows(const std::vector<Row>& rows) {
  for (const Row& row : rows) {
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
