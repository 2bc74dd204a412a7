#include <dlock/error.hpp>

#include <gtest/gtest.h>

#include <string>
#include <system_error>

namespace dlock {
namespace {

constexpr errc kAll[] = {errc::timed_out,   errc::cancelled, errc::lost,          errc::not_owner,
                         errc::unavailable, errc::ambiguous, errc::access_denied, errc::invalid_argument,
                         errc::unsupported, errc::closed,    errc::protocol};

TEST(Error, EveryCodeBelongsToTheCategoryAndHasAMessageOfItsOwn) {
  std::string seen;
  for (const errc e : kAll) {
    const std::error_code code = e;
    EXPECT_STREQ(code.category().name(), "dlock");
    EXPECT_TRUE(code);
    EXPECT_EQ(code, e);
    EXPECT_FALSE(code.message().empty());
    EXPECT_EQ(seen.find('[' + code.message() + ']'), std::string::npos) << code.message();
    seen += '[' + code.message() + ']';
  }
}

TEST(Error, AnUnknownValueHasAMessageToo) {
  EXPECT_EQ(std::error_code(999, error_category()).message(), "unknown error 999");
}

TEST(Error, CodesMeetTheStandardConditionsThatMeanTheSame) {
  EXPECT_EQ(make_error_code(errc::timed_out), std::errc::timed_out);
  EXPECT_EQ(make_error_code(errc::cancelled), std::errc::operation_canceled);
  EXPECT_EQ(make_error_code(errc::not_owner), std::errc::operation_not_permitted);
  EXPECT_EQ(make_error_code(errc::access_denied), std::errc::permission_denied);
  EXPECT_EQ(make_error_code(errc::invalid_argument), std::errc::invalid_argument);
  EXPECT_EQ(make_error_code(errc::unsupported), std::errc::not_supported);
  EXPECT_EQ(make_error_code(errc::protocol), std::errc::protocol_error);
}

TEST(Error, CodesWithoutAStandardConditionMeetOnlyThemselves) {
  for (const errc e : {errc::lost, errc::unavailable, errc::ambiguous, errc::closed}) {
    const auto condition = make_error_code(e).default_error_condition();
    EXPECT_EQ(&condition.category(), &error_category());
    EXPECT_EQ(make_error_code(e), condition);
  }
  EXPECT_FALSE(make_error_code(errc::lost) == make_error_code(errc::closed).default_error_condition());
}

TEST(Error, WhatIsTheDetailAndTheMessage) {
  const Error error(errc::unavailable, "redis at localhost: connection refused");
  EXPECT_STREQ(error.what(), "redis at localhost: connection refused: the lock service is unavailable");
  EXPECT_EQ(error.detail(), "redis at localhost: connection refused");
  EXPECT_EQ(error.code(), errc::unavailable);
}

TEST(Error, WithoutADetailWhatIsTheMessageAlone) {
  const Error error(errc::lost);
  EXPECT_STREQ(error.what(), "the lock was lost");
  EXPECT_EQ(error.detail(), "");
}

TEST(Error, CarriesCodesOfOtherCategories) {
  const Error error(Failure{std::make_error_code(std::errc::no_space_on_device), "/run/lock"});
  EXPECT_EQ(error.code(), std::errc::no_space_on_device);
  EXPECT_EQ(error.detail(), "/run/lock");
}

TEST(Error, IsCaughtAsASystemError) {
  EXPECT_THROW(throw Error(errc::closed), std::system_error);
}

}  // namespace
}  // namespace dlock
