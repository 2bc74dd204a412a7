// The server proves its identity by a certificate, the client by a password.
#include "network/room.hpp"

namespace dlock::test {

namespace {

class TlsTest : public Room {
 protected:
  TlsTest() : Room(ThrowawayCertificate::usual_names) {}

  // What a try and a wait say, which both end in time, and at once where the certificate is to blame.
  static std::string refusal(const std::string& url, bool at_once = true) {
    std::string said;
    const auto start = std::chrono::steady_clock::now();
    try {
      const Client client =
          connect_patiently(url + (url.find('?') == std::string::npos ? "?" : "&") + strategy(), impatient());
      DistributedLock lock = client.make_lock("refused");
      std::error_code error;
      EXPECT_FALSE(lock.try_acquire({}, error).has_value());
      EXPECT_TRUE(is_error_of_hostile_server(error)) << error.message();
      (void)lock.acquire({.wait = at_once ? 1min : 500ms});
      ADD_FAILURE() << "it is not refused";
    } catch (const Error& error) {
      said = error.what();
      EXPECT_TRUE(!at_once || error.code() == errc::access_denied || error.code() == errc::invalid_argument) << said;
    }
    EXPECT_LT(std::chrono::steady_clock::now() - start, far_too_long);
    return said;
  }
};

TEST_P(TlsTest, Diagnose_ReportsTheVerifiedCertificate) {
  EXPECT_TRUE(mentions(steady().diagnose(), Finding::Severity::ok, "TLS, and the server's certificate is verified"));
}

// Shows: deadlines
TEST_P(TlsTest, UnverifiedOrNoCertificate_IsRefusedInTime) {
  const ThrowawayCertificate other;
  const auto elsewhere = service_kind().start("DNS:elsewhere.example,IP:127.0.0.2");
  const auto plain = service_kind().start({});
  proxy.set({.mode = rig::Traffic::Mode::swallow});
  struct Row {
    const char* what;
    std::string url;
    bool at_once = true;
    const char* named = "";
  };
  for (const Row& row : {
           Row{"another authority", service.tls_url(service.port(), other.authority()), true, "certificate"},
           Row{"authorities of the machine", service.tls_url(service.port(), {})},
           Row{"no such file", service.tls_url(service.port(), "/nowhere/ca.crt"), true, "/nowhere/ca.crt"},
           Row{"another host", elsewhere->tls_url(elsewhere->port(), elsewhere->authority())},
           Row{"plain client of an encrypted port", service.plain_url(service.port()), false},
           Row{"encrypted client of a plain port", service.tls_url(plain->port(), service.authority()), false},
           Row{"silent server", service.tls_url(proxy.port(), service.authority()), false},
       }) {
    SCOPED_TRACE(row.what);
    const std::string said = refusal(row.url, row.at_once);
    EXPECT_NE(said.find(row.named), std::string::npos) << said;
  }
}

TEST_P(TlsTest, CutHandshake_EndsInTime) {
  // The server's part of the handshake is about 1.5 kB.
  for (std::uint64_t length = 0; length < 2000; length += 97) {
    proxy.cut_after(rig::Direction::to_client, length, length % 2 == 0 ? rig::Ending::reset : rig::Ending::close);
    Contender ours(disturbed(impatient()), "cut");
    std::error_code error;
    const auto lease = ours.lock.try_acquire({}, error);
    EXPECT_NE(lease.has_value(), static_cast<bool>(error)) << error.message();
    proxy.pass();
  }
  expect_free_and_clean("cut");
}

TEST_P(TlsTest, CertificateRenewedOnDisk_IsUsedByALiveClient) {
  const Client client = steady();
  DistributedLock lock = client.make_lock("renewed");
  Lease lease = take(lock);
  service.stop();
  service.renew_certificate();
  service.start();
  // A wait lasts until the client is connected again. A release is not repeated for so long.
  DistributedLock later = client.make_lock("later");
  EXPECT_TRUE(take(later).release());
  EXPECT_TRUE(ends_with_connection() || lease.release());
}

GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(TlsTest);
INSTANTIATE_TEST_SUITE_P(, TlsTest, ::testing::ValuesIn(tested_strategies(service_kind().has_tls)),
                         Room::strategy_name);

// --- Passwords ---

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
  expect_failure(errc::access_denied, "", [&] { ours.client.ping(forever); });
  EXPECT_LT(std::chrono::steady_clock::now() - start, far_too_long);
  EXPECT_TRUE(mentions(ours.client.diagnose(), Finding::Severity::error, ""));
  EXPECT_FALSE(mentions(ours.client.diagnose(), Finding::Severity::ok, password));
  EXPECT_EQ(log->warnings_with(password), 0U);
}

INSTANTIATE_TEST_SUITE_P(, PasswordTest, ::testing::ValuesIn(tested_strategies()), Room::strategy_name);

}  // namespace

}  // namespace dlock::test
