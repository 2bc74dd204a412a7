// Encrypted connections, and those that should have been.
#include "redis/redis_test.hpp"

namespace dlock::test {

namespace {

class TlsTest : public RedisTest {
 protected:
  explicit TlsTest(RedisConfig config = {.tls = true}) : RedisTest(std::move(config)) {}

  [[nodiscard]] std::string url(const std::string& scheme, std::uint16_t port, const std::string& ca = {}) const {
    return scheme + "://127.0.0.1:" + std::to_string(port) + (ca.empty() ? "" : "?tls_ca=" + ca);
  }
  // The error of a try and of a wait, which both end in time.
  static void expect_refused(const std::string& url) {
    const Client client = connect(url, impatient());
    DistributedLock lock = client.lock("refused");
    const auto start = std::chrono::steady_clock::now();
    std::error_code error;
    EXPECT_FALSE(lock.try_acquire({}, error).has_value());
    EXPECT_TRUE(error == errc::unavailable || error == errc::access_denied || error == errc::protocol)
        << error.message();
    EXPECT_FALSE(lock.try_acquire_for(500ms, {}, error).has_value());
    EXPECT_TRUE(error) << "a service that cannot be used is not busy";
    EXPECT_LT(std::chrono::steady_clock::now() - start, far_too_long);
  }
};

TEST_F(TlsTest, LocksAndWaiters) {
  const Client client = steady();
  const Client other_client = steady();
  DistributedLock lock = client.lock("encrypted");
  DistributedLock others = other_client.lock("encrypted");
  std::optional<Lease> lease = take(lock);
  Pending waiting(others, {});
  EXPECT_FALSE(others.try_acquire().has_value());
  lease.reset();
  EXPECT_TRUE(waiting.lease().release());
}

TEST_F(TlsTest, ACertificateOfAnotherAuthorityIsRefused) {
  const ThrowawayCertificate other;
  expect_refused(url("rediss", server.port(), other.authority()));
}

TEST_F(TlsTest, ACertificateOfAnUnknownAuthorityIsRefused) {
  expect_refused(url("rediss", server.port()));
}

TEST_F(TlsTest, TheDoctorSeesThatItIsVerified) {
  const Client client = steady();
  std::string said;
  for (const Finding& finding : client.diagnose()) {
    if (finding.check == "encryption") said = finding.message;
  }
  EXPECT_EQ(said, "TLS, and the server's certificate is verified");
}

class OtherHostTlsTest : public TlsTest {
 protected:
  OtherHostTlsTest() : TlsTest({.tls = true, .tls_names = "DNS:elsewhere.example,IP:127.0.0.2"}) {}
};

TEST_F(OtherHostTlsTest, ACertificateOfAnotherHostIsRefused) {
  expect_refused(url("rediss", server.port(), server.certificate().authority()));
}

TEST_F(TlsTest, AnAuthorityThatCannotBeReadIsRefused) {
  try {
    const Client client = connect(url("rediss", server.port(), "/nonexistent/ca.crt"), impatient());
    DistributedLock lock = client.lock("refused");
    (void)lock.try_acquire();
    ADD_FAILURE() << "without authority nobody can be trusted";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("ca"), std::string::npos) << error.what();
  }
}

TEST_F(TlsTest, APlainClientOfAnEncryptedPortEndsInTime) {
  expect_refused(url("redis", server.port()));
}

TEST_F(TlsTest, AnEncryptedClientOfAPlainPortEndsInTime) {
  const RedisServer plain;
  expect_refused(url("rediss", plain.port(), server.certificate().authority()));
}

TEST_F(TlsTest, ASilentServerEndsInTime) {
  proxy.set({.mode = rig::Traffic::Mode::swallow});
  expect_refused(server.url_at(proxy.port()));
}

TEST_F(TlsTest, AHandshakeCutAnywhereEndsInTime) {
  // The server's part of the handshake is about 1.5 kB.
  for (std::uint64_t length = 0; length < 2000; length += 97) {
    proxy.cut_after(rig::Direction::to_client, length, length % 2 == 0 ? rig::Ending::reset : rig::Ending::close);
    const Client client = disturbed(impatient());
    DistributedLock lock = client.lock("cut");
    std::error_code error;
    const auto lease = lock.try_acquire({.lease = 1s}, error);
    EXPECT_NE(lease.has_value(), static_cast<bool>(error)) << error.message();
    proxy.pass();
  }
  const Client client = steady();
  DistributedLock lock = client.lock("cut");
  EXPECT_TRUE(take(lock).release());
}

TEST_F(TlsTest, AWaitOutlastsADroppedConnection) {
  const Client client = steady();
  const Client other_client = disturbed();
  DistributedLock lock = client.lock("encrypted");
  DistributedLock others = other_client.lock("encrypted");
  std::optional<Lease> lease = take(lock);
  Pending waiting(others, {});
  EXPECT_FALSE(others.try_acquire().has_value());
  proxy.drop();
  lease.reset();
  EXPECT_TRUE(waiting.lease().release());
}

}  // namespace

}  // namespace dlock::test
