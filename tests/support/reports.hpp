// What a backend has reported, in one expectation:
//
//   ASSERT_TRUE(failed(*attempt, errc::access_denied, "GRANT"));
//   EXPECT_TRUE(lost(host, attempt->request.owner));  // that lock, and no other
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "tests/support/recording_host.hpp"

namespace dlock::test {

[[nodiscard]] inline testing::AssertionResult failed(const Attempt& attempt, errc code, const std::string& words = {}) {
  if (!attempt.failure) return testing::AssertionFailure() << "it has not failed";
  const auto& [is, detail] = *attempt.failure;
  if (is == code && detail.find(words) != std::string::npos) return testing::AssertionSuccess();
  return testing::AssertionFailure() << "it has failed so: " << is.message() << ": " << detail;
}

[[nodiscard]] inline testing::AssertionResult lost(const RecordingHost& host, const OwnerId& owner) {
  if (host.losses.size() == 1 && host.losses[0].owner == owner) return testing::AssertionSuccess();
  return testing::AssertionFailure() << host.losses.size() << " losses were reported";
}

}  // namespace dlock::test
