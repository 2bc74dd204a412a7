// A cluster whose nodes all write. How its clients exclude each other while it breaks is in tests/torture/services.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <functional>
#include <future>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "integration_test.hpp"
#include "live_connection.hpp"
#include "tests/support/galera_cluster.hpp"

namespace dlock::test {

namespace {

class MysqlGaleraTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    if (GaleraCluster::is_installed()) cluster_ = std::make_unique<GaleraCluster>();
  }
  static void TearDownTestSuite() { cluster_.reset(); }
  void SetUp() override {
    if (!cluster_) GTEST_SKIP() << GaleraCluster::not_installed;
  }
  [[nodiscard]] static GaleraNode& node(std::size_t index) { return cluster_->server(index); }

  static inline std::unique_ptr<GaleraCluster> cluster_;
};

// Shows: hole mysql-several-nodes
TEST_F(MysqlGaleraTest, LocksOfSessions_NeedASingleWriter) {
  for (const std::string strategy : {"strategy=named", "strategy=for-update"}) {
    SCOPED_TRACE(strategy);
    const Client refused = connect(node(1).url(strategy));
    expect_failure(errc::unsupported, "single_writer=true",
                   [&] { (void)refused.make_lock("one-writer").try_acquire(); });
    Client client = connect(node(0).url(strategy + "&single_writer=true"));
    Client other = connect(node(1).url(strategy + "&single_writer=true"));
    const auto lease = client.make_lock("one-writer").try_acquire();
    const auto second = other.make_lock("one-writer").try_acquire();
    EXPECT_TRUE(lease && lease->held() && second && second->held());
  }
}

TEST_F(MysqlGaleraTest, LockInATable_IsOneOnAllNodes) {
  Client first = connect(node(0).url());
  Client second = connect(node(2).url());
  DistributedLock ours = first.make_lock("one-lock");
  DistributedLock theirs = second.make_lock("one-lock");
  FencingToken last;
  for (int i = 0; i < 20; ++i) {
    Lease lease = (i % 2 == 0 ? ours : theirs).acquire({.wait = 20s});
    EXPECT_GT(lease.token(), last);
    last = lease.token();
    EXPECT_FALSE((i % 2 == 0 ? theirs : ours).try_acquire());
    EXPECT_TRUE(lease.release());
  }
}

// Hazard: a Galera node that reports a rolled-back transaction as committed
// Without QueryText::forbids_retries, about one grant in 7,000 overlaps another one.
TEST_F(MysqlGaleraTest, Contenders_NeverHoldTogether) {
  constexpr int grants = 12'000;
  std::vector<Client> clients;
  for (std::size_t i = 0; i < 3; ++i) clients.push_back(connect(node(i).url()));
  std::atomic<int> holders = 0;
  std::atomic<int> granted = 0;
  std::atomic<bool> together = false;
  const auto contend = [&](Client& client) {
    DistributedLock lock = client.make_lock("contended");
    while (granted < grants && !together) {
      Lease lease = lock.acquire({.wait = 60s});
      if (holders++ != 0) together = true;
      std::this_thread::sleep_for(500us);  // holds long enough for an overlap to be seen
      ++granted;
      --holders;
      (void)lease.release();
    }
  };
  std::vector<std::future<void>> contenders;
  for (std::size_t i = 0; i < 12; ++i) {
    contenders.push_back(std::async(std::launch::async, contend, std::ref(clients[i % clients.size()])));
  }
  for (std::future<void>& contender : contenders) contender.get();
  EXPECT_FALSE(together) << "after " << granted << " grants";
}

// Hazard: a node without a majority, which does not know what the others grant
TEST_F(MysqlGaleraTest, NodeWithoutMajority_IsLeftForTheNext) {
  const std::string url = cluster_->url();
  LiveConnection before(url);
  ASSERT_TRUE(before.open());
  EXPECT_EQ(before.server().endpoint, node(0).address() + "/locks");
  Client client = connect(url + "?lease=20s");
  Lease lease = client.make_lock("moves").acquire({.wait = 20s});

  node(0).isolate(true);
  const auto refused = before.ask("SELECT COUNT(*) FROM dlock.lease");
  EXPECT_EQ(refused->outcome().server_code, "1047") << refused->value();
  LiveConnection alone(node(0).url());
  EXPECT_FALSE(alone.open());
  EXPECT_EQ(alone.lost().code, errc::unavailable);
  EXPECT_NE(alone.lost().detail.find("no majority"), std::string::npos) << alone.lost().detail;
  LiveConnection after(url);
  ASSERT_TRUE(after.open());
  EXPECT_EQ(after.server().endpoint, node(1).address() + "/locks");

  Client other = connect(node(2).url());
  EXPECT_FALSE(other.make_lock("moves").try_acquire());
  EXPECT_TRUE(lease.held());
  EXPECT_TRUE(lease.release());                                         // at another node
  EXPECT_TRUE(other.make_lock("moves").acquire({.wait = 20s}).held());  // which this node sees a moment later
  node(0).isolate(false);
}

}  // namespace

}  // namespace dlock::test
