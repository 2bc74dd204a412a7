// Three servers, of which some fail.
#include <algorithm>
#include <array>
#include <atomic>
#include <cstdio>
#include <thread>

#include "zookeeper/zookeeper_test.hpp"

namespace dlock::test {

namespace {

class EnsembleTest : public ::testing::Test {
 protected:
  [[nodiscard]] Client client(ClientOptions options = {}, const std::string& parameters = long_session) const {
    return connect_patiently(ensemble.url(parameters), std::move(options));
  }
  // Which server a session is connected to.
  [[nodiscard]] std::optional<std::size_t> server_of(std::int64_t session) const {
    std::array<char, 32> text{};
    (void)std::snprintf(text.data(), text.size(), "sid=0x%llx,", static_cast<unsigned long long>(session));
    for (std::size_t i = 0; i < ensemble.size(); ++i) {
      if (ensemble.server(i).running() && ensemble.server(i).ask("cons").find(text.data()) != std::string::npos)
        return i;
    }
    return std::nullopt;
  }
  void kill_all_but(std::size_t survivor) const {
    for (std::size_t i = 0; i < ensemble.size(); ++i) {
      if (i != survivor) ensemble.server(i).kill();
    }
  }

  ZooKeeperEnsemble ensemble;
};

TEST_F(EnsembleTest, LeaderKilled_HolderKeepsItsLock) {
  const Client one = client();
  const Client two = client();
  DistributedLock lock = one.make_lock("held");
  DistributedLock others = two.make_lock("held");
  Lease lease = take(lock);
  const std::size_t dead = ensemble.leader();
  ensemble.server(dead).kill();
  EXPECT_NE(ensemble.leader(), dead);
  Pending waiting(others, {});
  Tree(ensemble.addresses()).await_residue("held", 2);
  EXPECT_TRUE(lease.held());
  EXPECT_FALSE(waiting.done());
  EXPECT_TRUE(lease.release());
  EXPECT_GT(waiting.lease().token(), lease.token());
}

// Many acquires, and the leader dies in the middle: each of them ends with the lock, never two at a time.
TEST_F(EnsembleTest, LeaderKilled_HundredAcquiresAllEndWithTheLock) {
  constexpr int clients = 4;
  constexpr int acquires_each = 25;
  std::atomic<int> inside{0};
  std::atomic<int> overlaps{0};
  std::atomic<int> backwards{0};
  std::atomic<std::uint64_t> last_token{0};
  Event acquired;
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < clients; ++i) {
      threads.emplace_back([&] {
        const Client own = client();
        DistributedLock lock = own.make_lock("hundred");
        for (int n = 0; n < acquires_each; ++n) {
          const Lease lease = take(lock);
          if (inside.fetch_add(1) != 0) overlaps.fetch_add(1);
          if (last_token.exchange(lease.token().value()) >= lease.token().value()) backwards.fetch_add(1);
          inside.fetch_sub(1);
          acquired.set();
        }
      });
    }
    acquired.wait("nobody gets the lock", 30);
    ensemble.server(ensemble.leader()).kill();
  }
  EXPECT_EQ(acquired.count(), static_cast<std::size_t>(clients) * acquires_each);
  EXPECT_EQ(overlaps, 0);
  EXPECT_EQ(backwards, 0);
  Tree(ensemble.addresses()).await_no_residue("hundred");
}

TEST_F(EnsembleTest, FollowerFrozenBeyondTheSession_HolderKeepsItsLock) {
  // A client library hears nothing for two thirds of it before it looks for another server; a holder may believe in it
  // for three quarters. The time in between is for a busy machine.
  constexpr auto session_timeout = 30s;
  const std::size_t leader = ensemble.leader();
  Tree tree(ensemble.server(leader).address());
  // The client library picks a server at random.
  for (int attempt = 0; attempt < 50; ++attempt) {
    const auto log = std::make_shared<EventLog>();
    const Client own = client({.observer = log}, "session_timeout=30s");
    DistributedLock lock = own.make_lock("follower");
    Lease lease = take(lock);
    const auto at = server_of(tree.holder("follower").value().owner);
    ASSERT_TRUE(at.has_value());
    if (*at == leader) continue;
    const TimePoint start = LeaseClock::now();
    ensemble.server(*at).freeze();
    log->reconnecting.wait("the standstill is not noticed");
    log->connected.wait("no other server is found", 2);
    Event later;
    LossEvent loss(lease);
    const auto rest = start + session_timeout + 1s - LeaseClock::now();
    EXPECT_FALSE(loss.event().wait_for(rest)) << "the session went on elsewhere";
    EXPECT_TRUE(lease.held());
    ensemble.server(*at).thaw();
    EXPECT_TRUE(lease.release());
    return;
  }
  FAIL() << "no client is connected to a follower";
}

TEST_F(EnsembleTest, WithoutQuorum_NothingIsGrantedAndHoldersKeepTheirs) {
  const Client one = client();
  DistributedLock lock = one.make_lock("quorum");
  DistributedLock another = one.make_lock("another");
  Lease lease = take(lock);
  kill_all_but(ensemble.follower());
  std::error_code error;
  const auto start = std::chrono::steady_clock::now();
  (void)another.acquire({.wait = 1s}, error);
  EXPECT_TRUE(error == errc::unavailable || error == errc::ambiguous) << error.message();
  EXPECT_LT(std::chrono::steady_clock::now() - start, far_too_long);
  Pending waiting(another, {});
  EXPECT_TRUE(lease.held());
  ensemble.start();
  EXPECT_TRUE(waiting.lease().held());
  EXPECT_TRUE(lease.held());
  EXPECT_TRUE(lease.release());
  Tree tree(ensemble.addresses());
  tree.await_no_residue("another");
  tree.await_no_residue("quorum");
}

TEST_F(EnsembleTest, QuorumLostBeyondTheSession_IsALoss) {
  const Client one = client({}, short_session);
  const Client two = client({}, short_session);
  DistributedLock lock = one.make_lock("quorum");
  DistributedLock others = two.make_lock("quorum");
  const Lease lease = take(lock);
  const LossEvent loss(lease);
  kill_all_but(ensemble.follower());
  std::atomic<bool> overlap{false};
  Pending waiting(others, {}, [&](Lease& /*granted*/) { overlap = lease.held(); });
  loss.event().wait("the loss is not signalled");
  EXPECT_FALSE(waiting.done());
  ensemble.start();
  EXPECT_GT(waiting.lease().token(), lease.token());
  EXPECT_FALSE(overlap);
}

TEST_F(EnsembleTest, CutOffFromAllServers_IsToldBeforeTheNextGrant) {
  std::vector<std::unique_ptr<rig::TcpProxy>> proxies;
  std::string list;
  for (std::size_t i = 0; i < ensemble.size(); ++i) {
    proxies.push_back(std::make_unique<rig::TcpProxy>(rig::Endpoint::loopback(ensemble.server(i).port())));
    list += (i == 0 ? "127.0.0.1:" : ",127.0.0.1:") + std::to_string(proxies.back()->port());
  }
  const Client one = connect_patiently("zookeeper://" + list + "?" + short_session);
  const Client two = client();
  DistributedLock lock = one.make_lock("partition");
  DistributedLock others = two.make_lock("partition");
  const Lease lease = take(lock);
  std::atomic<bool> overlap{false};
  Pending waiting(others, {}, [&](Lease& /*granted*/) { overlap = lease.held() || !lease.lost().stop_requested(); });
  Tree(ensemble.addresses()).await_residue("partition", 2);
  for (const auto& each : proxies) each->set({.mode = rig::Traffic::Mode::swallow});
  EXPECT_GT(waiting.lease().token(), lease.token());
  EXPECT_FALSE(overlap);
}

// A server that has lost the others goes on answering what it remembers, and a leader even says that it is up to date.
// That is no ground to believe in a session.
TEST_F(EnsembleTest, ServerWithoutTheOthers_KeepsNoLockAlive) {
  constexpr auto session_timeout = 2s;
  for (const bool leads : {false, true}) {
    const std::size_t survivor = leads ? ensemble.leader() : ensemble.follower();
    const Client one = connect_patiently(ensemble.server(survivor).url("session_timeout=2s"));
    DistributedLock lock = one.make_lock("alone");
    const Lease lease = take(lock);
    const LossEvent loss(lease);
    for (std::size_t i = 0; i < ensemble.size(); ++i) {
      if (i != survivor) ensemble.server(i).freeze();
    }
    const TimePoint alone = LeaseClock::now();
    loss.event().wait("a lock is believed to be held without a quorum");
    EXPECT_LT(lease.valid_until(), alone + session_timeout);
    for (std::size_t i = 0; i < ensemble.size(); ++i) {
      if (i != survivor) ensemble.server(i).thaw();
    }
    EXPECT_TRUE(take(lock).held());
  }
}

// Each server starts without the data of the others' last moments; tokens grow all the same.
TEST_F(EnsembleTest, LeaderChanges_TokensGrow) {
  const Client one = client();
  DistributedLock lock = one.make_lock("tokens");
  FencingToken last;
  for (int i = 0; i < 3; ++i) {
    const FencingToken token = take(lock).token();
    EXPECT_GT(token, last);
    last = token;
    const std::size_t leader = ensemble.leader();
    ensemble.server(leader).kill();
    (void)ensemble.leader();
    ensemble.start();
  }
  EXPECT_GT(take(lock).token(), last);
}

}  // namespace

}  // namespace dlock::test
