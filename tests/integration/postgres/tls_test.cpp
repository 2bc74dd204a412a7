// Encryption: who the server is, is checked, and a password is never shown.
#include "postgres/postgres_test.hpp"

namespace dlock::test {

namespace {

class TlsTest : public PostgresStrategyTest {
 protected:
  explicit TlsTest(PostgresConfig config = {.tls = true}) : PostgresStrategyTest(std::move(config)) {}

  [[nodiscard]] std::string to(const std::string& password) const {
    return std::string("postgresql://") + PostgresServer::user + ":" + password +
           "@127.0.0.1:" + std::to_string(server.port()) + "/" + PostgresServer::database + "?" + strategy();
  }
  // What an acquire that is to be refused says, at once and without a word of the password.
  [[nodiscard]] static std::string refusal(const std::string& url, const std::string& password) {
    const auto log = std::make_shared<EventLog>();
    ClientOptions options = impatient();
    options.observer = log;
    const Client client = connect(url, options);
    EXPECT_EQ(client.url().find(password), std::string::npos);
    DistributedLock lock = client.lock("secret");
    const auto start = std::chrono::steady_clock::now();
    std::string said;
    try {
      (void)lock.acquire({.wait = 1min});
      ADD_FAILURE() << "it is not refused";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), errc::access_denied) << error.what();
      said = error.what();
    }
    EXPECT_LT(std::chrono::steady_clock::now() - start, far_too_long);
    EXPECT_EQ(said.find(password), std::string::npos) << said;
    EXPECT_EQ(log->warnings_with(password), 0U);
    return said;
  }
};

TEST_P(TlsTest, LocksAreTakenAndAwaitedOverIt) {
  const Client holder = steady(patient());
  const Client other = steady(patient());
  DistributedLock lock = holder.lock("secret");
  DistributedLock others = other.lock("secret");
  Lease lease = take(lock);
  Pending waiting(others, {});
  await_waiter("secret");
  EXPECT_EQ(server.value("SELECT count(*) FROM pg_stat_activity JOIN pg_stat_ssl USING (pid) WHERE usename = 'locker' "
                         "AND NOT ssl"),
            "0");
  EXPECT_TRUE(lease.release());
  EXPECT_TRUE(waiting.lease().release());
}

TEST_P(TlsTest, AServerOfAnotherAuthorityIsRefused) {
  const ThrowawayCertificate other;
  const std::string said = refusal(
      to(PostgresServer::password) + "&sslmode=verify-full&sslrootcert=" + other.authority(), PostgresServer::password);
  EXPECT_NE(said.find("certificate"), std::string::npos) << said;
}

TEST_P(TlsTest, TheDoctorSeesThatItIsVerified) {
  const Client client = steady(patient());
  std::string said;
  for (const Finding& finding : client.diagnose()) {
    if (finding.check == "encryption") said = finding.message;
  }
  EXPECT_EQ(said, "TLS, and the server's certificate is verified: verify-full");
}

// A server that takes connections without TLS, too: libpq by itself would fall back to one.
class FallingBackTest : public TlsTest {
 protected:
  FallingBackTest() : TlsTest({.tls = true, .tls_names = "DNS:elsewhere.example,IP:127.0.0.2", .plain_too = true}) {}
};

TEST_P(FallingBackTest, WhoNamesAnAuthorityHasTheServerVerified) {
  const ThrowawayCertificate other;
  const std::string said =
      refusal(to(PostgresServer::password) + "&sslrootcert=" + other.authority(), PostgresServer::password);
  EXPECT_NE(said.find("certificate"), std::string::npos) << said;
}

TEST_P(FallingBackTest, ACertificateOfAnotherHostIsRefused) {
  const std::string authority = "&sslrootcert=" + server.certificate().authority();
  for (const char* mode : {"", "&sslmode=verify-full"}) {
    const std::string said = refusal(to(PostgresServer::password) + authority + mode, PostgresServer::password);
    EXPECT_NE(said.find("does not match host name"), std::string::npos) << said;
  }
  // Whoever wants less says so.
  const Client client = connect(to(PostgresServer::password) + authority + "&sslmode=verify-ca", patient());
  DistributedLock lock = client.lock("secret");
  EXPECT_TRUE(take(lock).release());
}

TEST_P(TlsTest, AnAuthorityThatCannotBeReadIsNamed) {
  const std::string said = refusal(to(PostgresServer::password) + "&sslmode=verify-full&sslrootcert=/nowhere/ca.crt",
                                   PostgresServer::password);
  EXPECT_NE(said.find("/nowhere/ca.crt"), std::string::npos) << said;
}

TEST_P(TlsTest, WhoDoesNotEncryptIsRefused) {
  (void)refusal(to(PostgresServer::password) + "&sslmode=disable", PostgresServer::password);
}

TEST_P(TlsTest, AWrongPasswordIsRefusedAndNotShown) {
  const std::string said = refusal(
      to("hidden-word") + "&sslmode=verify-full&sslrootcert=" + server.certificate().authority(), "hidden-word");
  EXPECT_NE(said.find("28P01"), std::string::npos) << said;
}

INSTANTIATE_TEST_SUITE_P(, TlsTest, testing::ValuesIn(all_strategies), strategy_name);
INSTANTIATE_TEST_SUITE_P(, FallingBackTest, ::testing::Values(Strategy::table), strategy_name);

}  // namespace

}  // namespace dlock::test
