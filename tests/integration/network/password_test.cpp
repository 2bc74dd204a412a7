// Who is not let in is told so at once, and a password is never shown.
#include "network/room.hpp"

namespace dlock::test {

namespace {

class PasswordTest : public Room {};

TEST_P(PasswordTest, WrongPassword_IsDeniedAtOnceAndNeverShown) {
  const std::string password = "hidden-word";
  const auto log = std::make_shared<EventLog>();
  ClientOptions options = impatient();
  options.observer = log;
  Contender ours(connect_patiently(service.url_of_stranger(password, strategy()), options), "secret");
  EXPECT_EQ(ours.client.url().find(password), std::string::npos) << ours.client.url();
  std::error_code error;
  EXPECT_FALSE(ours.lock.try_acquire({}, error).has_value());
  EXPECT_EQ(error, errc::access_denied) << error.message();
  // It is not tried again and again until the deadline.
  const auto start = std::chrono::steady_clock::now();
  const Failure failure = failure_of([&] { (void)ours.lock.acquire({.wait = 1min}); });
  EXPECT_EQ(failure.code, errc::access_denied) << failure.detail;
  EXPECT_EQ(failure.detail.find(password), std::string::npos) << failure.detail;
  EXPECT_LT(std::chrono::steady_clock::now() - start, far_too_long);
  EXPECT_TRUE(mentions(ours.client.diagnose(), Finding::Severity::error, ""));
  EXPECT_FALSE(mentions(ours.client.diagnose(), Finding::Severity::ok, password));
  EXPECT_EQ(log->warnings_with(password), 0U);
}

INSTANTIATE_TEST_SUITE_P(, PasswordTest, ::testing::ValuesIn(tested_strategies()), Room::strategy_name);

}  // namespace

}  // namespace dlock::test
