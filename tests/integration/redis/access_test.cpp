// Passwords and permissions.
#include <filesystem>
#include <fstream>
#include <map>
#include <set>

#include "redis/redis_test.hpp"

namespace dlock::test {

namespace {

class AccessTest : public RedisTest {
 protected:
  AccessTest() : RedisTest({.password = "administrator", .user = RedisUser{}}) {}

  void set_user(const RedisUser& user) {
    std::vector<std::string> command = {"ACL", "SETUSER"};
    const auto rules = user.rules();
    command.insert(command.end(), rules.begin(), rules.end());
    (void)server.command(command);
    (void)server.command({"FLUSHALL"});
    (void)server.command({"SCRIPT", "FLUSH"});
  }
  // Acquire, a waiter that is served, release; the first error of them.
  static std::error_code use(const Client& client, const Client& other_client) {
    DistributedLock lock = client.make_lock("used");
    DistributedLock others = other_client.make_lock("used");
    Outcome first = Pending(lock, {.wait = 5s}).get();
    if (first.error) return first.error;
    Pending waiting(others, {.wait = 10s});
    // Sent on the same connection, so the server knows the waiter when this is answered.
    std::error_code error;
    EXPECT_FALSE(others.try_acquire({}, error).has_value());
    const bool released = first.lease.release(error);
    EXPECT_NE(released, static_cast<bool>(error));
    if (error) return error;
    Outcome second = waiting.get();
    if (!second.error) (void)second.lease.release(second.error);
    return second.error;
  }
  [[nodiscard]] std::string url_of(const std::string& login) const { return "redis://" + login + server.address(); }
};

// Hazard: H28 missing rights: a warning; polls
TEST_F(AccessTest, WrongLoginOrPrefix_IsDenied) {
  const RedisServer open;
  const std::map<std::string, bool> denied = {
      {url_of(":administrator@"), false},
      {url_of("locker:locker-secret@") + "?prefix=dlock:elsewhere:", false},
      {url_of("locker:locker-secret@") + "?prefix=elsewhere:", true},  // keys outside the user's pattern
      {url_of("locker:wrong@"), true},
      {url_of(":wrong@"), true},
      {url_of("stranger:locker-secret@"), true},
      {url_of(""), true},
      {"redis://:password@" + open.address(), true},  // which has no password
  };
  for (const auto& [url, is_denied] : denied) {
    const std::error_code error = try_error(connect_patiently(url, unwaiting()));
    EXPECT_EQ(error, is_denied ? make_error_code(errc::access_denied) : std::error_code()) << url;
  }
}

TEST_F(AccessTest, PasswordRenewedInItsFile_IsUsedAtTheNextLogin) {
  const rig::ScratchDirectory directory;
  const std::string file = directory.path() + "/password";
  write_file(file, "locker-secret\n");
  const Client client = connect_patiently(
      "redis://locker@127.0.0.1:" + std::to_string(proxy.port()) + "?password_file=" + file, {.lease = long_lease});
  DistributedLock wanted = client.make_lock("wanted");
  Lease lease = take(client, "held");
  const Client other = steady({.lease = long_lease});
  Lease in_the_way = take(other, "wanted");
  Pending waiting(wanted, {});
  await_waiters("wanted", 1);
  (void)server.command({"ACL", "SETUSER", "locker", "resetpass", ">renewed-secret"});
  proxy.drop();
  await("no login was refused", [&] { return !server.command({"ACL", "LOG"}).elements.empty(); });
  write_file(file, "renewed-secret\n");
  EXPECT_TRUE(in_the_way.release());
  EXPECT_TRUE(waiting.lease().release());
  EXPECT_TRUE(lease.release());
}

TEST_F(AccessTest, DocumentedRights_Suffice) {
  const auto log = std::make_shared<EventLog>();
  for (const char* strategy : {"strategy=queue", "strategy=broadcast", "strategy=poll"}) {
    EXPECT_EQ(use(steady({.observer = log}, strategy), steady({}, strategy)), std::error_code()) << strategy;
  }
  EXPECT_EQ(log->warned.count(), 0U);
}

TEST_F(AccessTest, EachMissingRight_IsAnErrorOrAWarning) {
  const std::set<std::string> warned_of = {"+publish", "+subscribe", "+role"};
  const std::set<std::string> done_without = {"+unsubscribe", "+ping", "+client|setname"};
  for (const std::string& missing : RedisUser::redis_rights()) {
    RedisUser user;
    std::erase(user.rights, missing);
    set_user(user);
    const auto log = std::make_shared<EventLog>();
    const auto start = std::chrono::steady_clock::now();
    const std::error_code error = use(steady({.observer = log}), steady({.observer = log}));
    EXPECT_LT(std::chrono::steady_clock::now() - start, far_too_long) << missing;
    const bool needed = !warned_of.contains(missing) && !done_without.contains(missing);
    EXPECT_EQ(error, needed ? make_error_code(errc::access_denied) : std::error_code()) << missing;
    if (warned_of.contains(missing)) log->warned.wait("a missing right is not warned of");
  }
}

TEST_F(AccessTest, RightsOfHashes_AreNeededForPermits) {
  const auto share = [&](const RedisUser& user) {
    set_user(user);
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

TEST_F(AccessTest, WithoutPublishAndSubscribe_WaitersPollAndOneWarningEach) {
  RedisUser user;
  for (const char* missing : {"+publish", "+subscribe", "+unsubscribe"}) std::erase(user.rights, missing);
  user.patterns = {"~dlock:*", "~{dlock:*"};
  set_user(user);
  for (const char* strategy : {"strategy=queue", "strategy=broadcast"}) {
    const auto log = std::make_shared<EventLog>();
    const Client client = steady({.observer = log}, strategy);
    for (int i = 0; i < 3; ++i) EXPECT_EQ(use(client, client), std::error_code()) << strategy;
    log->warned.wait(std::string("no warning with ") + strategy);
    EXPECT_LE(log->warnings_with("publish"), 1U) << strategy;
    EXPECT_LE(log->warnings_with("subscribe"), 1U) << strategy;
    EXPECT_LE(log->warned.count(), 2U) << strategy;
  }
}

// Shows: loss-signal
TEST_F(AccessTest, UserRemovedWhileHolding_LosesTheLockInTime) {
  const Client client = steady();
  const Lease lease = take(client, "held", {.lease = 500ms});
  const LossEvent loss(lease);
  (void)server.command({"ACL", "DELUSER", "locker"});
  loss.event().wait("the loss is not signalled");
  EXPECT_FALSE(lease.held());
}

// While certificates are renewed, a server may have its own before its clients have its authority's.
TEST(RenewedCertificate, AuthorityNotKnownYet_ServerIsUnavailable) {
  RedisServer server({.tls = true});
  const rig::ScratchDirectory directory;
  const std::string known = directory.path() + "/ca.crt";
  const auto make_known = [&] {
    std::filesystem::copy_file(server.certificate().authority(), known,
                               std::filesystem::copy_options::overwrite_existing);
  };
  make_known();
  Contender ours(connect_patiently("rediss://" + server.address() + "?tls_ca=" + known), "renewed");
  EXPECT_TRUE(take(ours.lock).release());
  server.stop();
  server.certificate().renew();
  server.start();
  std::error_code code;
  await("the certificate is not refused", [&] {
    try {
      return ours.lock.try_acquire().has_value();
    } catch (const Error& error) {
      code = error.code();
      return std::string(error.what()).find("certificate") != std::string::npos;
    }
  });
  EXPECT_EQ(code, errc::unavailable);
  make_known();
  EXPECT_TRUE(take(ours.lock).release());
}

}  // namespace

}  // namespace dlock::test
