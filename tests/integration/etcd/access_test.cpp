// Users and their rights, logins that the server forgets, and certificates that are users.
#include <system_error>

#include "etcd/etcd_test.hpp"

namespace dlock::test {

namespace {

EtcdConfig with_user(EtcdUser user = {}, std::vector<std::string> options = {}) {
  options.emplace_back("--bcrypt-cost=4");
  return {.user = std::move(user), .options = std::move(options)};
}

// How a try, and an acquire that may wait for long, are refused.
std::string refusal(const Client& client, const std::string& name = "refused") {
  DistributedLock lock = client.make_lock(name);
  const auto start = std::chrono::steady_clock::now();
  std::error_code error;
  EXPECT_FALSE(lock.try_acquire({}, error).has_value());
  EXPECT_EQ(error, errc::access_denied) << error.message();
  const Failure failure = failure_of([&] { (void)lock.acquire({.wait = 1min}); });
  EXPECT_EQ(failure.code, errc::access_denied) << failure.detail;
  EXPECT_LT(std::chrono::steady_clock::now() - start, far_too_long);
  return failure.detail;
}

// The rights that the documents name do for each kind, and for questions.
void expect_all_kinds(const Client& client) {
  DistributedLock lock = client.make_lock("all");
  ReadWriteLock shared = client.make_read_write_lock("all");
  Semaphore semaphore = client.make_semaphore("all", 2);
  Election election = client.make_election("all");
  const Lease leases[] = {take(lock), shared.acquire_shared(), take(semaphore), election.campaign({.value = "here"})};
  EXPECT_EQ(election.leader()->value, "here");
  std::size_t asked = 0;
  for (const LockKind kind : {LockKind::lock, LockKind::read_write, LockKind::semaphore, LockKind::election}) {
    SCOPED_TRACE(to_string(kind));
    const Lease& lease = leases[asked++];
    EXPECT_EQ(client.inspect("all", kind).token, lease.token());
    EXPECT_EQ(client.list(kind).size(), 1U);
    const LossEvent loss(lease);
    EXPECT_TRUE(client.break_lock("all", kind));
    loss.event().wait("a broken lock is not told");
  }
  EXPECT_TRUE(take(shared).release());
  for (const Finding& each : client.diagnose()) EXPECT_NE(each.severity, Finding::Severity::error) << each.message;
}

class AccessTest : public EtcdTest {
 protected:
  AccessTest() : AccessTest(EtcdUser{}) {}
  explicit AccessTest(EtcdUser user) : EtcdTest(with_user(std::move(user))) {}

  [[nodiscard]] Client as(const std::string& login, const std::string& parameters = long_session) const {
    return connect_patiently("etcd://" + login + server.address() + "?" + parameters);
  }
};

TEST_F(AccessTest, DocumentedRights_Suffice) {
  expect_all_kinds(steady());
}

TEST_F(AccessTest, WrongLogin_IsDeniedAndNotShown) {
  const std::pair<const char*, const char*> logins[] = {{"", "user name is empty"},
                                                        {"locker:wr0ng-secret@", "authentication failed"},
                                                        {"nobody:wr0ng-secret@", "authentication failed"}};
  for (const auto& [login, reason] : logins) {
    const Client client = as(login);
    const std::string said = refusal(client);
    EXPECT_NE(said.find(server.address()), std::string::npos) << said;
    EXPECT_EQ(said.find("wr0ng-secret"), std::string::npos) << said;
    EXPECT_TRUE(mentions(client.diagnose(), Finding::Severity::error, reason)) << login;
  }
}

// Who is let in later needs no other client.
TEST_F(AccessTest, RightsGivenLater_Suffice) {
  (void)server.ctl({"user", "add", "guest:guest-secret"});
  Contender ours(as("guest:guest-secret@"), "refused");
  const std::string said = refusal(ours.client);
  EXPECT_NE(said.find("permission denied"), std::string::npos) << said;
  EXPECT_THROW((void)ours.client.list(), Error);
  EXPECT_TRUE(mentions(ours.client.diagnose(), Finding::Severity::error, "permission denied"));
  (void)server.ctl({"user", "grant-role", "guest", "locker"});
  EXPECT_TRUE(take(ours.lock).release());
}

class LocksOnlyTest : public AccessTest {
 protected:
  LocksOnlyTest() : AccessTest(EtcdUser{.prefixes = {"dlock/"}}) {}
};

TEST_F(LocksOnlyTest, RightsForLocksOnly_SufficeForLocks) {
  Contender own(steady(), "x");
  Lease lease = take(own.lock);
  EXPECT_EQ(own.client.inspect("x").token, lease.token());
  std::error_code error;
  EXPECT_FALSE(own.client.make_semaphore("x", 2).try_acquire({}, error).has_value());
  EXPECT_EQ(error, errc::access_denied) << error.message();
  EXPECT_TRUE(lease.held()) << "others' refusals are none of its business";
  EXPECT_TRUE(lease.release());
}

// --- Logins that the server forgets ----------------------------------------------------------------------------------

class ForgottenLoginTest : public EtcdTest {
 protected:
  explicit ForgottenLoginTest(EtcdConfig config = short_memory()) : EtcdTest(std::move(config)) {}
  static EtcdConfig short_memory() {
    EtcdConfig config = with_user();
    config.token_ttl = 1s;
    return config;
  }
  void forget_logins() const {
    (void)server.ctl({"auth", "disable"});
    (void)server.ctl({"auth", "enable"});
  }
  // One who holds, one who waits for that, one who was idle: nobody notices.
  template <class Disturbance>
  void expect_nobody_notices(Disturbance disturb) {
    const auto log = std::make_shared<EventLog>();
    Contender holder(steady({.observer = log}), "held");
    const Client waiter = steady({.observer = log});
    Contender idle(steady({.observer = log}), "other");
    DistributedLock waited_for = waiter.make_lock("held");
    EXPECT_TRUE(take(idle.lock).release());
    Lease lease = take(holder.lock);
    const LossEvent loss(lease);
    Pending waiting(waited_for, {});
    keys.await_residue("held", 2);
    disturb();
    std::error_code error;
    EXPECT_TRUE(idle.lock.try_acquire({}, error).has_value()) << error.message();
    EXPECT_TRUE(holder.client.inspect("held").held);
    EXPECT_FALSE(loss.happened());
    EXPECT_FALSE(waiting.done());
    EXPECT_TRUE(lease.release());
    Lease next = waiting.lease();
    const LossEvent next_loss(next);
    DistributedLock again = waiter.make_lock("again");
    EXPECT_TRUE(take(again).release());
    // Its key is looked after as before.
    keys.remove_key_of("held");
    EXPECT_TRUE(next_loss.event().wait_for(far_too_long));
    log->losses.wait("the observer is not told");
    EXPECT_EQ(log->losses.count(), 1U);
    EXPECT_EQ(log->reconnecting.count(), 0U);
  }
};

TEST_F(ForgottenLoginTest, AllLoginsForgotten_DisturbsNoClient) {
  expect_nobody_notices([this] { forget_logins(); });
}

// Members that are started anew have forgotten the login, and refuse another one.
// Hazard: authentication is switched under a client
TEST_F(ForgottenLoginTest, AuthenticationOffAndOn_HolderKeepsItsLock) {
  const auto log = std::make_shared<EventLog>();
  const Client client = steady({.observer = log});
  DistributedLock lock = client.make_lock("held");
  DistributedLock other = client.make_lock("other");
  Lease lease = take(lock);
  (void)server.ctl({"auth", "disable"});
  server.kill();
  server.start();
  EXPECT_TRUE(take(other).release());
  EXPECT_TRUE(mentions(client.diagnose(), Finding::Severity::warning, "authentication is not enabled"));
  (void)server.ctl({"auth", "enable"});
  EXPECT_TRUE(take(other).release());
  EXPECT_EQ(log->losses.count(), 0U);
  EXPECT_TRUE(lease.release());
}

// A token that says by itself who it is for, and for which state of the rights.
class SignedLoginTest : public ForgottenLoginTest {
 protected:
  SignedLoginTest() : ForgottenLoginTest(signing()) {}
  static EtcdConfig signing() {
    static const rig::ScratchDirectory directory;
    const std::string key = directory.path() + "/key.pem";
    const std::string public_key = directory.path() + "/public.pem";
    (void)rig::run_command({"openssl", "genrsa", "-out", key, "2048"});
    (void)rig::run_command({"openssl", "rsa", "-in", key, "-pubout", "-out", public_key});
    return with_user({}, {"--auth-token=jwt,sign-method=RS256,ttl=10m,pub-key=" + public_key + ",priv-key=" + key});
  }
};

TEST_F(SignedLoginTest, RightsChanged_DisturbsNoClient) {
  expect_nobody_notices([this] {
    (void)server.ctl({"role", "add", "another"});
    (void)server.ctl({"role", "grant-permission", "another", "readwrite", "elsewhere/", "--prefix"});
  });
}

// --- Certificates ----------------------------------------------------------------------------------------------------

class CertificateTest : public EtcdTest {
 protected:
  CertificateTest() : EtcdTest(config()) {}
  static EtcdConfig config() {
    EtcdConfig config = with_user({.name = ThrowawayCertificate::usual_owner});
    config.tls = true;
    config.client_certificates = true;
    return config;
  }
  [[nodiscard]] std::string ours() const {
    const ThrowawayCertificate& certificate = server.certificate();
    return "tls_ca=" + certificate.authority() + "&tls_cert=" + certificate.certificate() +
           "&tls_key=" + certificate.key();
  }
  [[nodiscard]] Client with(const std::string& parameters) const {
    return connect("etcds://" + server.address() + "?" + parameters, impatient());
  }
  // The server says no, and that may change: it is asked again until the deadline.
  static void expect_complaint(const Client& client) {
    DistributedLock lock = client.make_lock("refused");
    std::error_code error;
    EXPECT_FALSE(lock.try_acquire({}, error).has_value());
    EXPECT_TRUE(error == errc::unavailable || error == errc::access_denied) << error.message();
    const Failure failure = failure_of([&] { (void)lock.acquire({.wait = 500ms}); });
    EXPECT_NE(failure.detail.find("certificate"), std::string::npos) << failure.detail;
  }
};

TEST_F(CertificateTest, Certificate_IsAUserWithoutAPassword) {
  expect_all_kinds(with(ours()));
}

TEST_F(CertificateTest, NoOrForeignCertificate_IsRefusedWithTheReason) {
  const std::string authority = "tls_ca=" + server.certificate().authority();
  expect_complaint(with(authority));
  const ThrowawayCertificate other;
  expect_complaint(with(authority + "&tls_cert=" + other.certificate() + "&tls_key=" + other.key()));
}

TEST_F(AccessTest, PasswordRenewedInItsFile_IsUsedAtTheNextLogin) {
  const rig::ScratchDirectory directory;
  const std::string file = directory.path() + "/password";
  write_file(file, "locker-secret\n");
  const Client client =
      connect_patiently("etcd://locker@" + server.address() + "?password_file=" + file + "&" + long_session);
  DistributedLock lock = client.make_lock("held");
  DistributedLock next = client.make_lock("next");
  Lease lease = take(lock);
  // The server forgets the user's logins.
  (void)rig::run_command({"sh", "-c",
                          "echo renewed-secret | ETCDCTL_API=3 etcdctl --endpoints=" + server.address() +
                              " --user=root:" + EtcdServer::root_password + " user passwd locker --interactive=false"});
  std::error_code error;
  EXPECT_FALSE(next.try_acquire({}, error).has_value());
  EXPECT_EQ(error, errc::unavailable) << error.message();
  write_file(file, "renewed-secret\n");
  EXPECT_TRUE(take(next).release());
  EXPECT_TRUE(lease.release());
}

}  // namespace

}  // namespace dlock::test
