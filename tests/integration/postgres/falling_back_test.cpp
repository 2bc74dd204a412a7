// A server that takes connections with TLS and without: libpq by itself would fall back to one without.
#include "postgres/postgres_test.hpp"

namespace dlock::test {

namespace {

class FallingBackTest : public PostgresTest {
 protected:
  FallingBackTest()
      : PostgresTest({.tls = true, .tls_names = "DNS:elsewhere.example,IP:127.0.0.2", .plain_too = true}) {}

  [[nodiscard]] std::string to(const std::string& parameters) const {
    return std::string("postgresql://") + PostgresServer::user + ":" + PostgresServer::password +
           "@127.0.0.1:" + std::to_string(server.port()) + "/" + PostgresServer::database + "?" + parameters;
  }
  // What an acquire that is to be refused says at once.
  [[nodiscard]] static std::string refusal(const std::string& url) {
    const Client client = connect_patiently(url, impatient());
    DistributedLock lock = client.make_lock("secret");
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
    return said;
  }
};

TEST_F(FallingBackTest, WhoNamesAnAuthorityHasTheServerVerified) {
  const ThrowawayCertificate other;
  const std::string said = refusal(to("sslrootcert=" + other.authority()));
  EXPECT_NE(said.find("certificate"), std::string::npos) << said;
}

TEST_F(FallingBackTest, ACertificateOfAnotherHostIsRefused) {
  const std::string authority = "sslrootcert=" + server.certificate().authority();
  for (const char* mode : {"", "&sslmode=verify-full"}) {
    const std::string said = refusal(to(authority + mode));
    EXPECT_NE(said.find("does not match host name"), std::string::npos) << said;
  }
  // Whoever wants less says so.
  const Client client = connect_patiently(to(authority + "&sslmode=verify-ca"), patient());
  DistributedLock lock = client.make_lock("secret");
  EXPECT_TRUE(take(lock).release());
}

}  // namespace

}  // namespace dlock::test
