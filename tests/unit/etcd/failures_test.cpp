#include "backends/etcd/connection/failures.hpp"

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <vector>

namespace dlock::etcd {
namespace {

struct Row {
  int code;
  const char* message;
  Trouble trouble;
  errc failure;
};

void expect_rows(const std::vector<Row>& rows) {
  for (const Row& row : rows) {
    const GrpcStatus status{.code = row.code, .message = row.message};
    EXPECT_EQ(trouble_in(status), row.trouble) << row.code << ' ' << row.message;
    const Failure failure = to_failure(status, "h1:2379");
    EXPECT_EQ(failure.code, row.failure) << row.code << ' ' << row.message;
    EXPECT_EQ(failure.detail, "h1:2379: " + std::string(row.message));
  }
}

TEST(EtcdFailures, ACallThatWentWellIsNone) {
  EXPECT_EQ(trouble_in({}), Trouble::none);
  EXPECT_FALSE(to_failure({}, "h").code);
  EXPECT_FALSE(to_failure({.code = 0, .message = "etcdserver: requested lease not found"}, "h").code);
}

// What was sent may have been carried out, or may still be.
TEST(EtcdFailures, AMemberThatCannotAnswerSaysNothingAboutTheOutcome) {
  expect_rows({
      {14, "etcdserver: leader changed", Trouble::unavailable, errc::ambiguous},
      {14, "etcdserver: request timed out", Trouble::unavailable, errc::ambiguous},
      {14, "etcdserver: request timed out, possibly due to previous leader failure", Trouble::unavailable,
       errc::ambiguous},
      {14, "transport is closing", Trouble::unavailable, errc::ambiguous},
      {14, "a call was aborted: INTERNAL_ERROR", Trouble::unavailable, errc::ambiguous},
      {4, "context deadline exceeded", Trouble::unavailable, errc::ambiguous},
      {2, "context deadline exceeded", Trouble::unavailable, errc::ambiguous},
      {2, "etcdserver: server stopped", Trouble::unavailable, errc::ambiguous},
      {2, "a call ended without a status", Trouble::unavailable, errc::ambiguous},
      {1, "context canceled", Trouble::unavailable, errc::ambiguous},
      {10, "aborted", Trouble::unavailable, errc::ambiguous},
  });
}

TEST(EtcdFailures, ACallThatNeverBeganIsNotInDoubt) {
  expect_rows({{14, "etcdserver: no leader", Trouble::unavailable, errc::unavailable}});
  const GrpcStatus refused{.code = 14, .message = "a call was aborted: REFUSED_STREAM", .not_carried_out = true};
  EXPECT_EQ(trouble_in(refused), Trouble::unavailable);
  EXPECT_EQ(to_failure(refused, "h").code, errc::unavailable);
}

TEST(EtcdFailures, TheEndOfTheSessionIsALoss) {
  expect_rows({
      {5, "etcdserver: requested lease not found", Trouble::no_lease, errc::lost},
      {2, "etcdserver: requested lease not found", Trouble::no_lease, errc::lost},
  });
}

TEST(EtcdFailures, WhoHasNoRightsIsToldSo) {
  expect_rows({
      {3, "etcdserver: authentication failed, invalid user ID or password", Trouble::refused, errc::access_denied},
      {7, "etcdserver: permission denied", Trouble::refused, errc::access_denied},
  });
}

// Or for the first one, where authentication was switched on.
TEST(EtcdFailures, ATokenThatIsNotKnownAnyMoreAsksForAnotherLogin) {
  expect_rows({
      {16, "etcdserver: invalid auth token", Trouble::unauthorized, errc::access_denied},
      {3, "etcdserver: revision of auth store is old", Trouble::unauthorized, errc::access_denied},
      {3, "etcdserver: user name is empty", Trouble::unauthorized, errc::access_denied},
  });
}

TEST(EtcdFailures, OnlyALoginWhereAuthenticationIsOffNeedsNone) {
  EXPECT_TRUE(is_without_logins({.code = 9, .message = "etcdserver: authentication is not enabled"}));
  EXPECT_FALSE(is_without_logins({.code = 9, .message = "etcdserver: root user does not exist"}));
}

TEST(EtcdFailures, WhatAnAdministratorCanChangeIsUnavailable) {
  expect_rows({
      {8, "etcdserver: mvcc: database space exceeded", Trouble::overloaded, errc::unavailable},
      {8, "etcdserver: too many requests", Trouble::overloaded, errc::unavailable},
      {15, "etcdserver: corrupt cluster", Trouble::overloaded, errc::unavailable},
      {14, "etcdserver: rpc not supported for learner", Trouble::unavailable, errc::unavailable},
      {9, "etcdserver: rpc not supported for learner", Trouble::unavailable, errc::unavailable},
      {14, "etcdserver: not capable", Trouble::unavailable, errc::unavailable},
  });
}

// They end a try, and not a wait.
TEST(EtcdFailures, CodesThatAreNotKnownAreTemporary) {
  for (const int code : {5, 6, 9, 13, 15, 99}) {
    expect_rows({{code, "from the future", Trouble::unavailable, errc::ambiguous}});
  }
}

TEST(EtcdFailures, WhatIsWrongWithTheRequestIsNotTriedAgain) {
  expect_rows({
      {3, "etcdserver: duplicate key given in txn request", Trouble::refused, errc::protocol},
      {3, "etcdserver: too many operations in txn request", Trouble::refused, errc::protocol},
      {11, "etcdserver: mvcc: required revision has been compacted", Trouble::refused, errc::protocol},
      {11, "etcdserver: too large lease TTL", Trouble::refused, errc::protocol},
      {12, "unknown service etcdserverpb.Lease", Trouble::refused, errc::unsupported},
  });
}

}  // namespace
}  // namespace dlock::etcd
