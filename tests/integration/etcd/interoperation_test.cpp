// etcdctl's own locks and elections, in one queue with ours.
#include <csignal>

#include "etcd/etcd_test.hpp"

namespace dlock::test {

namespace {

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
