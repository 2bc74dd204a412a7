// Passwords and permissions.
#include <filesystem>
#include <fstream>
#include <set>
#include <string>
#include <system_error>

#include "redis/redis_test.hpp"

namespace dlock::test {

namespace {

RedisConfig with_users() {
  RedisConfig config;
  config.password = "administrator";
  config.user = RedisUser{};
  return config;
}

class AccessTest : public RedisTest {
 protected:
  AccessTest() : RedisTest(with_users()) {}

  void set_user(const RedisUser& user) {
    std::vector<std::string> command = {"ACL", "SETUSER"};
    const auto rules = user.rules();
    command.insert(command.end(), rules.begin(), rules.end());
    (void)server.command(command);
  }
  [[nodiscard]] std::string url_as(const std::string& who) const {
    return "redis://" + who + "127.0.0.1:" + std::to_string(server.port());
  }
  // Acquire, a waiter that is served, release; what the first of them says that fails.
  static std::error_code use(const Client& client, const Client& other_client) {
    DistributedLock lock = client.make_lock("used");
    DistributedLock others = other_client.make_lock("used");
    Outcome first = Pending(lock, {.wait = 5s}).get();
    if (first.error) return first.error;
    Pending waiting(others, {.wait = 10s});
    // Asked by the same connection, so the server has heard of the waiter when this is answered.
    std::error_code error;
    EXPECT_FALSE(others.try_acquire({}, error).has_value());
    const bool released = first.lease.release(error);
    EXPECT_NE(released, static_cast<bool>(error));
    if (error) return error;
    Outcome second = waiting.get();
    if (second.error) return second.error;
    (void)second.lease.release(error);
    return error;
  }
};

TEST_F(AccessTest, AWrongPasswordIsDenied) {
  for (const char* who : {"locker:wrong@", ":wrong@", "stranger:locker-secret@", ""}) {
    const Client client = connect_patiently(url_as(who), unwaiting());
    DistributedLock lock = client.make_lock("secret");
    std::error_code error;
    EXPECT_FALSE(lock.try_acquire({}, error).has_value());
    EXPECT_EQ(error, errc::access_denied) << who;
  }
}

TEST_F(AccessTest, APasswordRenewedInItsFile_IsUsedAtTheNextLogin) {
  const rig::ScratchDirectory directory;
  const std::string file = directory.path() + "/password";
  std::ofstream(file) << "locker-secret\n";
  const Client client = connect_patiently(
      "redis://locker@127.0.0.1:" + std::to_string(proxy.port()) + "?password_file=" + file, {.lease = long_lease});
  DistributedLock lock = client.make_lock("held");
  DistributedLock wanted = client.make_lock("wanted");
  Lease lease = take(lock);
  const Client other = steady({.lease = long_lease});
  DistributedLock others = other.make_lock("wanted");
  Lease in_the_way = take(others);
  Pending waiting(wanted, {});
  await_waiters("wanted", 1);
  (void)server.command({"ACL", "SETUSER", "locker", "resetpass", ">renewed-secret"});
  proxy.drop();
  await("no login was refused", [&] { return !server.command({"ACL", "LOG"}).elements.empty(); });
  std::ofstream(file) << "renewed-secret\n";
  EXPECT_TRUE(in_the_way.release());
  EXPECT_TRUE(waiting.lease().release());
  EXPECT_TRUE(lease.release());
}

TEST_F(AccessTest, APasswordForAServerThatHasNoneIsDenied) {
  const RedisServer open;
  const Client client = connect_patiently("redis://:password@127.0.0.1:" + std::to_string(open.port()), unwaiting());
  DistributedLock lock = client.make_lock("secret");
  std::error_code error;
  EXPECT_FALSE(lock.try_acquire({}, error).has_value());
  EXPECT_EQ(error, errc::access_denied) << error.message();
}

TEST_F(AccessTest, TheDefaultUserNeedsOnlyThePassword) {
  const Client client = connect_patiently(url_as(":administrator@"));
  DistributedLock lock = client.make_lock("secret");
  EXPECT_TRUE(take(lock).release());
}

TEST_F(AccessTest, TheDocumentedRightsSuffice) {
  const auto log = std::make_shared<EventLog>();
  for (const char* strategy : {"strategy=queue", "strategy=broadcast", "strategy=poll"}) {
    const Client client = steady({.observer = log}, strategy);
    const Client other_client = steady({}, strategy);
    const std::error_code error = use(client, other_client);
    EXPECT_FALSE(error) << strategy << ": " << error.message();
  }
  EXPECT_EQ(log->warned.count(), 0U);
}

TEST_F(AccessTest, EveryMissingRightIsAnErrorOrAWarningAndNeverAHang) {
  const std::set<std::string> warned_of = {"+publish", "+subscribe", "+role"};
  const std::set<std::string> done_without = {"+unsubscribe", "+ping", "+client|setname"};
  for (const std::string& missing : RedisUser::redis_rights()) {
    RedisUser user;
    std::erase(user.rights, missing);
    set_user(user);
    (void)server.command({"FLUSHALL"});
    (void)server.command({"SCRIPT", "FLUSH"});
    const auto log = std::make_shared<EventLog>();
    const Client client = steady({.observer = log});
    const Client other_client = steady({.observer = log});
    const auto start = std::chrono::steady_clock::now();
    const std::error_code error = use(client, other_client);
    EXPECT_LT(std::chrono::steady_clock::now() - start, far_too_long) << missing;
    if (warned_of.contains(missing)) {
      EXPECT_FALSE(error) << missing << ": " << error.message();
      log->warned.wait("a missing right is not warned of");
    } else if (done_without.contains(missing)) {
      EXPECT_FALSE(error) << missing << ": " << error.message();
    } else {
      EXPECT_EQ(error, errc::access_denied) << missing << ": " << error.message();
    }
  }
}

TEST_F(AccessTest, LocksThatSeveralHoldNeedTheRightsOfHashesToo) {
  const auto share = [&](const RedisUser& user) {
    set_user(user);
    (void)server.command({"FLUSHALL"});
    const Client client = steady(unwaiting());
    Semaphore semaphore = client.make_semaphore("x", 2);
    std::error_code error;
    Lease lease = semaphore.acquire({.wait = conformance::guard()}, error);
    if (!error) (void)lease.release(error);
    return error;
  };
  EXPECT_FALSE(share(RedisUser::of_all_kinds()));
  for (const std::string& missing : RedisUser::sharing_rights()) {
    RedisUser user = RedisUser::of_all_kinds();
    std::erase(user.rights, missing);
    EXPECT_EQ(share(user), errc::access_denied) << missing;
    EXPECT_TRUE(mentions(steady(unwaiting()).diagnose(), Finding::Severity::note,
                         "missing for read-write locks and semaphores"))
        << missing;
  }
}

TEST_F(AccessTest, WithoutTheRightToAcquireTheErrorNamesTheCommand) {
  for (const char* missing : {"+set", "+get", "+eval"}) {
    RedisUser user;
    std::erase(user.rights, missing);
    set_user(user);
    const Client client = steady(unwaiting());
    DistributedLock lock = client.make_lock("forbidden");
    try {
      (void)lock.try_acquire();
      ADD_FAILURE() << missing << " is not needed";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), errc::access_denied) << missing;
      EXPECT_FALSE(error.detail().empty());
    }
  }
}

TEST_F(AccessTest, WithoutPublishAndSubscribeItPollsAndSaysSoOnce) {
  RedisUser user;
  for (const char* missing : {"+publish", "+subscribe", "+unsubscribe"}) std::erase(user.rights, missing);
  user.patterns = {"~dlock:*", "~{dlock:*"};
  set_user(user);
  for (const char* strategy : {"strategy=queue", "strategy=broadcast"}) {
    const auto log = std::make_shared<EventLog>();
    const Client client = steady({.observer = log}, strategy);
    for (int i = 0; i < 3; ++i) {
      const std::error_code error = use(client, client);
      EXPECT_FALSE(error) << strategy << ": " << error.message();
    }
    log->warned.wait(std::string("no warning with ") + strategy);
    EXPECT_LE(log->warnings_with("publish"), 1U) << strategy;
    EXPECT_LE(log->warnings_with("subscribe"), 1U) << strategy;
    EXPECT_LE(log->warned.count(), 2U) << strategy;
  }
}

TEST_F(AccessTest, KeysOutsideThePatternAreDenied) {
  const Client client = steady(unwaiting(), "prefix=elsewhere:");
  DistributedLock lock = client.make_lock("forbidden");
  std::error_code error;
  EXPECT_FALSE(lock.try_acquire({}, error).has_value());
  EXPECT_EQ(error, errc::access_denied) << error.message();
}

TEST_F(AccessTest, RightsTakenAwayWhileHoldingLoseTheLockInTime) {
  const Client client = steady();
  DistributedLock lock = client.make_lock("held");
  const Lease lease = take(lock, {.lease = 500ms});
  const LossEvent loss(lease);
  (void)server.command({"ACL", "DELUSER", "locker"});
  loss.event().wait("the loss is not signalled");
  EXPECT_FALSE(lease.held());
}

// While certificates are renewed, a server may have its own before its clients have its authority's.
TEST(RenewedCertificateTest, AServerWhoseNewAuthorityIsNotKnownYet_IsUnavailable) {
  RedisServer server({.tls = true});
  const rig::ScratchDirectory directory;
  const std::string known = directory.path() + "/ca.crt";
  const auto make_known = [&] {
    std::filesystem::copy_file(server.certificate().authority(), known,
                               std::filesystem::copy_options::overwrite_existing);
  };
  make_known();
  const Client client = connect_patiently("rediss://127.0.0.1:" + std::to_string(server.port()) + "?tls_ca=" + known);
  DistributedLock lock = client.make_lock("renewed");
  EXPECT_TRUE(take(lock).release());
  server.stop();
  server.certificate().renew();
  server.start();
  std::error_code code;
  await("the certificate is not refused", [&] {
    try {
      return lock.try_acquire().has_value();
    } catch (const Error& error) {
      code = error.code();
      return std::string(error.what()).find("certificate") != std::string::npos;
    }
  });
  EXPECT_EQ(code, errc::unavailable);
  make_known();
  EXPECT_TRUE(take(lock).release());
}

}  // namespace

}  // namespace dlock::test
