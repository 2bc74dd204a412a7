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
  const Client client = connect_patiently(service.url_of_stranger(password, strategy()), options);
  EXPECT_EQ(client.url().find(password), std::string::npos) << client.url();
  DistributedLock lock = client.make_lock("secret");
  std::error_code error;
  EXPECT_FALSE(lock.try_acquire({}, error).has_value());
  EXPECT_EQ(error, errc::access_denied) << error.message();
  // It is not tried again and again until the deadline.
  const auto start = std::chrono::steady_clock::now();
  try {
    (void)lock.acquire({.wait = 1min});
    ADD_FAILURE() << "it is not refused";
  } catch (const Error& refusal) {
    EXPECT_EQ(refusal.code(), errc::access_denied) << refusal.what();
    EXPECT_EQ(std::string(refusal.what()).find(password), std::string::npos) << refusal.what();
  }
  EXPECT_LT(std::chrono::steady_clock::now() - start, far_too_long);
  EXPECT_TRUE(mentions(client.diagnose(), Finding::Severity::error, ""));
  EXPECT_FALSE(mentions(client.diagnose(), Finding::Severity::ok, password));
  EXPECT_EQ(log->warnings_with(password), 0U);
}

INSTANTIATE_TEST_SUITE_P(, PasswordTest, ::testing::ValuesIn(tested_strategies()), Room::strategy_name);

}  // namespace

}  // namespace dlock::test
