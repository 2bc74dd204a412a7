// Disturbances of one server, and of the keys and sessions in it; and etcdctl's own locks and elections, in one
// queue with ours.
#include <csignal>

#include "etcd/etcd_test.hpp"

namespace dlock::test {

namespace {

// Long before a session of 60 s is asked about, or a waiter looks by itself.
constexpr auto at_once = 5s;

// --- Somebody interferes ---------------------------------------------------------------------------------------------

class InterferenceTest : public EtcdTest {
 protected:
  // Others write, and the history up to then is forgotten.
  void compact_behind_others() const {
    (void)server.ctl({"put", "others", "1"});
    (void)server.ctl({"put", "others", "2"});
    server.compact();
  }
};

// All is removed, sessions' own keys too, as by an administrator who cleans up.
TEST_F(InterferenceTest, AllKeysDeleted_HolderLosesAndWaiterIsGranted) {
  Contender ours(steady(), "razed");
  Contender other(steady({}, short_session), "razed");
  const Lease lease = take(ours.lock);
  const LossEvent loss(lease);
  Pending waiting(other.lock, {});
  keys.await_residue("razed", 2);
  keys.remove_all();
  EXPECT_TRUE(loss.event().wait_for(at_once));
  const Lease next = waiting.lease();
  EXPECT_TRUE(next.held());
  EXPECT_GT(next.token(), lease.token());
}

// Hazard: a watch's history was compacted (etcd#9715): read and watch again
TEST_F(InterferenceTest, Compaction_DisturbsNoClient) {
  const Client client = steady();
  Contender other(steady(), "compacted");
  DistributedLock held = client.make_lock("compacted");
  DistributedLock third = client.make_lock("compacted");
  Lease lease = take(held);
  const LossEvent loss(lease);
  Pending waiting(other.lock, {});
  keys.await_residue("compacted", 2);
  Pending behind(third, {});
  keys.await_residue("compacted", 3);
  compact_behind_others();
  EXPECT_FALSE(loss.event().wait_for(100ms));
  EXPECT_FALSE(waiting.done());
  EXPECT_TRUE(lease.release());
  Lease next = waiting.lease();
  compact_behind_others();
  EXPECT_TRUE(next.release());
  EXPECT_TRUE(behind.event().wait_for(at_once));
  Lease last = behind.lease();
  EXPECT_TRUE(last.release());
  keys.await_residue("compacted", 0);
}

// What happened while the connection was broken is neither told nor remembered.
TEST_F(InterferenceTest, CompactedDuringAnOutage_EventsAreStillNoticed) {
  Contender ours(steady(), "waited-for");
  const Client other = disturbed();
  DistributedLock lock = other.make_lock("waited-for");
  DistributedLock own = other.make_lock("held");
  Lease lease = take(ours.lock);
  const Lease doomed = take(own);
  const LossEvent loss(doomed);
  Pending waiting(lock, {});
  keys.await_residue("waited-for", 2);
  cut();
  EXPECT_TRUE(lease.release());
  keys.remove_key_of("held");
  compact_behind_others();
  EXPECT_FALSE(waiting.done());
  heal();
  EXPECT_TRUE(loss.event().wait_for(far_too_long));
  EXPECT_TRUE(waiting.event().wait_for(far_too_long));
}

// --- Limits of the server --------------------------------------------------------------------------------------------

// A watch is a stream that stays open, and every call is one while it is under way.
class NarrowTest : public EtcdTest, public ::testing::WithParamInterface<int> {
 protected:
  NarrowTest() : EtcdTest(EtcdConfig{.options = {"--max-concurrent-streams=" + std::to_string(GetParam())}}) {}
};

// Hazard: few streams, idle limits: a second connection, measured limits
TEST_P(NarrowTest, FewStreams_LocksAreKeptAndHandedOn) {
  const auto log = std::make_shared<EventLog>();
  Contender first(steady({.observer = log}, short_session), "narrow");
  Contender second(steady({.observer = log}, short_session), "narrow");
  Lease lease = take(first.lock);
  Pending waiting(second.lock, {});
  keys.await_residue("narrow", 2);
  await_renewal(lease);
  EXPECT_TRUE(lease.release());
  EXPECT_TRUE(waiting.event().wait_for(at_once));
  Lease next = waiting.lease();
  const LossEvent loss(next);
  keys.remove_key_of("narrow");
  EXPECT_TRUE(loss.event().wait_for(at_once));
  EXPECT_EQ(log->reconnecting.count(), 0U);
}

INSTANTIATE_TEST_SUITE_P(Streams, NarrowTest, ::testing::Values(1, 2));

class FullTest : public EtcdTest {
 protected:
  FullTest() : EtcdTest(EtcdConfig{.options = {"--quota-backend-bytes=262144"}}) {}
  // The server raises the alarm NOSPACE.
  void fill() const {
    const std::string much(100'000, 'x');
    EXPECT_THROW(for (int i = 0; i < 10; ++i)(void) server.ctl({"put", "much/" + std::to_string(i), much}),
                 std::runtime_error);
  }
  void make_room() const {
    (void)server.ctl({"del", "much/", "--prefix"});
    server.compact();
    (void)server.ctl({"defrag"});
    (void)server.ctl({"alarm", "disarm"});
  }
};

// Shows: hole etcd-quota
TEST_F(FullTest, QuotaUsedUp_WaiterWaitsAndTryFails) {
  const auto log = std::make_shared<EventLog>();
  const Client client = steady({.observer = log});
  DistributedLock held = client.make_lock("held");
  DistributedLock lock = client.make_lock("full");
  Lease lease = take(held);
  fill();
  Pending waiting(lock, {});
  std::error_code error;
  EXPECT_FALSE(client.make_lock("tried").try_acquire({}, error).has_value());
  EXPECT_EQ(error, errc::unavailable) << error.message();
  EXPECT_FALSE(waiting.done());
  EXPECT_TRUE(lease.held());
  make_room();
  EXPECT_TRUE(waiting.lease().held());
  EXPECT_EQ(log->losses.count() + log->reconnecting.count(), 0U);
}

// --- etcdctl --------------------------------------------------------------------------------------------------------

using Etcdctl = std::unique_ptr<rig::ChildProcess>;

class EtcdctlTest : public EtcdTest {
 protected:
  [[nodiscard]] Client in_their_place(ClientOptions options = {}) const {
    return steady(std::move(options), std::string(long_session) + "&names=verbatim&prefix=");
  }
  [[nodiscard]] Etcdctl lock_by_ctl(const std::string& name) const {
    return server.ctl_process({"lock", name, "--ttl=60"});
  }
  [[nodiscard]] Etcdctl elect_by_ctl(const std::string& name, const std::string& value) const {
    return server.ctl_process({"elect", name, value});
  }
  void await_queue(const std::string& name, std::size_t count) const {
    await("not so many are at " + name, [&] { return server.keys(name + "/").size() == count; });
  }
  // It prints its key once it holds or leads.
  static void await_grant(const Etcdctl& ctl, const std::string& name) {
    ASSERT_TRUE(ctl->wait_for_output(name + "/")) << ctl->output();
  }
  static void let_go(const Etcdctl& ctl) {
    ctl->signal(SIGINT);
    ctl->wait_for_output_end();
    (void)ctl->wait();
  }
};

TEST_F(EtcdctlTest, MixedQueue_IsServedInOrder) {
  Contender one(in_their_place(), "line");
  Contender two(in_their_place(), "line");
  Lease first = take(one.lock);
  const Etcdctl second = lock_by_ctl("line");
  await_queue("line", 2);
  Pending third(two.lock, {});
  await_queue("line", 3);
  const Etcdctl fourth = lock_by_ctl("line");
  await_queue("line", 4);
  EXPECT_EQ(one.client.inspect("line").waiters, 3U);
  EXPECT_TRUE(first.release());
  await_grant(second, "line");
  EXPECT_FALSE(third.done());
  let_go(second);
  Lease lease = third.lease();
  EXPECT_GT(lease.token(), first.token());
  EXPECT_EQ(fourth->output(), "");
  EXPECT_TRUE(lease.release());
  await_grant(fourth, "line");
  let_go(fourth);
}

TEST_F(EtcdctlTest, EtcdctlElected_IsObserved) {
  const Client client = in_their_place();
  Election election = client.make_election("leader");
  EXPECT_FALSE(election.leader().has_value());
  const Etcdctl theirs = elect_by_ctl("leader", "their-address");
  await_grant(theirs, "leader");
  // It has one text where ours have a holder and a value.
  const auto leader = election.leader();
  ASSERT_TRUE(leader.has_value());
  EXPECT_EQ(leader->holder, "their-address");
  EXPECT_FALSE(election.try_campaign({.value = "ours"}).has_value());
  Event led;
  election.async_campaign({.value = "our-address"}, [&led](const std::error_code& error, Lease lease) {
    EXPECT_FALSE(error) << error.message();
    conformance::release_soon(std::move(lease));
    led.set();
  });
  await_queue("leader", 2);
  let_go(theirs);
  led.wait("nobody follows");
}

TEST_F(EtcdctlTest, WeAreElected_EtcdctlObservesUs) {
  const Client client = in_their_place();
  Election election = client.make_election("leader");
  Lease lease = election.campaign({.value = "our-address"});
  const Etcdctl listening = server.ctl_process({"elect", "--listen", "leader"});
  EXPECT_TRUE(listening->wait_for_output(client.holder() + "\nour-address")) << listening->output();
  const Etcdctl theirs = elect_by_ctl("leader", "their-address");
  await_queue("leader", 2);
  EXPECT_EQ(theirs->output(), "");
  EXPECT_EQ(election.leader()->value, "our-address");
  EXPECT_TRUE(lease.release());
  await_grant(theirs, "leader");
  EXPECT_TRUE(listening->wait_for_output("their-address")) << listening->output();
  let_go(theirs);
}

}  // namespace

}  // namespace dlock::test
