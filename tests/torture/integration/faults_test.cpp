// A client of a service to which one thing is done at a time.
#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <memory>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include <dlock/dlock.hpp>

#include "tests/support/servers.hpp"
#include "tests/torture/breakage/wall_clock.hpp"
#include "tests/torture/client/commanded_client.hpp"
#include "torture/nemesis/used_up_descriptors.hpp"
#include "torture/rig/scratch_directory.hpp"

namespace dlock::torture {
namespace {

using namespace std::chrono_literals;

struct Service {
  std::shared_ptr<void> running;  // while this lives
  std::string url;
};

struct ServiceKind {
  std::string name;  // also of the test
  bool renews;       // each lock, one by one
  std::function<Service()> start;

  friend void PrintTo(const ServiceKind& kind, std::ostream* out) { *out << kind.name; }
};

template <class Server>
Service start(const std::string& parameters) {
  const auto server = std::make_shared<Server>();
  return {server, server->url(parameters)};
}

// All that are built here, each with a lease of two seconds or thereabouts.
std::vector<ServiceKind> all_services() {
  std::vector<ServiceKind> all;
#ifdef DLOCK_FAULT_FILE
  all.push_back({"file", false, [] {
                   const auto directory = std::make_shared<rig::ScratchDirectory>();
                   return Service{directory, "file://" + directory->path()};
                 }});
#endif
#if DLOCK_TEST_WITH_REDIS
  all.push_back({"redis", true, [] { return start<test::RedisServer>("lease=2s"); }});
#endif
#if DLOCK_TEST_WITH_POSTGRES
  all.push_back({"postgres_table", true, [] { return start<test::PostgresServer>("lease=2s"); }});
  all.push_back({"postgres_advisory", false, [] { return start<test::PostgresServer>("strategy=advisory&lease=2s"); }});
#endif
#if DLOCK_TEST_WITH_MYSQL
  all.push_back({"mysql_table", true, [] { return start<test::MysqlServer>("lease=2s"); }});
  all.push_back({"mysql_named", false, [] { return start<test::MysqlServer>("strategy=named&lease=2s"); }});
#endif
#if DLOCK_TEST_WITH_ZOOKEEPER
  all.push_back({"zookeeper", false, [] { return start<test::ZooKeeperServer>("session_timeout=2s"); }});
#endif
#if DLOCK_TEST_WITH_ETCD
  all.push_back({"etcd", false, [] { return start<test::EtcdServer>("session_ttl=2s"); }});
#endif
  return all;
}

class FaultTest : public testing::TestWithParam<ServiceKind> {
 protected:
  void start(const std::vector<std::string>& variables = {}) {
    service_ = GetParam().start();
    client_ = std::make_unique<CommandedClient>(service_.url, variables);
    other_ = std::make_unique<Client>(connect(service_.url));
  }

  Service service_;
  std::unique_ptr<CommandedClient> client_;
  std::unique_ptr<Client> other_;
};
constexpr auto name_of_service = [](const auto& service) { return service.param.name; };

// It can open nothing any more: it says so, keeps what it holds, and goes on when it can.
class NoDescriptors : public FaultTest {
 protected:
  void SetUp() override {
    std::string why_not;
    if (!UsedUpDescriptors::available(why_not)) GTEST_SKIP() << "needs privilege: " << why_not;
    start();
  }
};

// It begins to wait when there is nothing left to open.
// Shows: nothing-guessed, deadlines
TEST_P(NoDescriptors, ClientThatCannotConnect_ReportsItAndRecovers) {
  Lease others = other_->make_lock("b").acquire({.wait = 10s});
  {
    const UsedUpDescriptors none_left(client_->pid());
    ASSERT_EQ(client_->tell("wait b"), "waiting");
    for (const char* command : {"acquire a 0", "acquire a 300"}) {
      const std::string answer = client_->tell(command);
      EXPECT_TRUE(answer.starts_with("error the lock service is unavailable | ")) << answer;
      EXPECT_NE(answer.find("Too many open files"), std::string::npos) << answer;
    }
    EXPECT_TRUE(client_->running());
    EXPECT_FALSE(client_->had_event("denied ")) << client_->said();
  }
  const std::string answer = client_->tell("acquire a 10000");
  EXPECT_TRUE(answer.starts_with("granted a ")) << answer;
  EXPECT_TRUE(others.release());
  EXPECT_GT(std::stoull(client_->await_event("granted b ")), others.token().value());
}

// The other one holds what it waits for, for longer than any lease.
// Shows: renewal, release-reports
TEST_P(NoDescriptors, Holder_KeepsItsLockAndReleasesIt) {
  Lease others = other_->make_lock("b").acquire({.wait = 10s});
  ASSERT_TRUE(client_->tell("acquire a 10000").starts_with("granted a ")) << client_->said();
  {
    const UsedUpDescriptors none_left(client_->pid());
    const std::string answer = client_->tell("acquire b 3000");
    EXPECT_TRUE(answer.starts_with("error ")) << answer;
    if (GetParam().renews) client_->await_renewals(3);
    EXPECT_EQ(client_->tell("held a"), "held");
    EXPECT_FALSE(other_->make_lock("a").try_acquire().has_value());
    EXPECT_FALSE(client_->had_event("lost ")) << client_->said();
    EXPECT_EQ(client_->tell("release a"), "ours");
    EXPECT_TRUE(other_->make_lock("a").try_acquire_for(10s).has_value());
  }
  ASSERT_EQ(client_->tell("wait b"), "waiting");
  EXPECT_TRUE(others.release());
  EXPECT_GT(std::stoull(client_->await_event("granted b ")), others.token().value());
}

INSTANTIATE_TEST_SUITE_P(All, NoDescriptors, testing::ValuesIn(all_services()), name_of_service);

// Its wall clock is stepped by hours, both ways, while it holds and waits: nothing changes.
class SteppedClock : public FaultTest {
 protected:
  void SetUp() override {
    std::string why_not;
    if (!WallClock::available(why_not)) GTEST_SKIP() << why_not;
    clock_ = std::make_unique<WallClock>(directory_.path());
    start(clock_->variables());
  }
  void TearDown() override { client_.reset(); }  // before its clock

  // The token of a lock that the client with the stepped clock takes.
  std::uint64_t take(const std::string& name) {
    const std::string answer = client_->tell("acquire " + name + " 10000");
    const std::string granted = "granted " + name + " ";
    EXPECT_TRUE(answer.starts_with(granted)) << answer;
    return answer.starts_with(granted) ? std::stoull(answer.substr(granted.size())) : 0;
  }

  rig::ScratchDirectory directory_;
  std::unique_ptr<WallClock> clock_;
};

// The wait that ends by its deadline is longer than a lease: each has been renewed or has run out, and the client has
// looked at its clocks all the while.
// Shows: one-holder, waiters-woken
TEST_P(SteppedClock, HolderAndWaiter_NoticeNothing) {
  (void)take("a");
  for (const auto& [step, name] : {std::pair(5h, std::string("b")), std::pair(-10h, std::string("c"))}) {
    Lease others = other_->make_lock(name).acquire({.wait = 10s});
    ASSERT_EQ(client_->tell("wait " + name), "waiting");
    clock_->step(step);
    EXPECT_EQ(client_->tell("held a"), "held");
    const TimePoint begin = LeaseClock::now();
    const std::string answer = client_->tell("acquire " + name + " 3000");
    EXPECT_TRUE(answer.starts_with("error timed out")) << answer;
    EXPECT_GE(LeaseClock::now() - begin, 2990ms);
    if (GetParam().renews) client_->await_renewals(2);
    EXPECT_EQ(client_->tell("held a"), "held");
    EXPECT_FALSE(other_->make_lock("a").try_acquire().has_value());
    EXPECT_FALSE(client_->had_event("lost ") || client_->had_event("denied ")) << client_->said();
    EXPECT_TRUE(others.release());
    EXPECT_GT(std::stoull(client_->await_event("granted " + name + " ")), others.token().value());
  }
  EXPECT_EQ(client_->tell("release a"), "ours");
}

// Whoever takes the lock, and whatever it takes for the time.
// Shows: growing-tokens
TEST_P(SteppedClock, TokensGrow) {
  std::uint64_t newest = 0;
  for (const auto step : {0h, 5h, -10h, 48h, -96h}) {
    clock_->step(step);
    const std::uint64_t token = take("a");
    EXPECT_GT(token, newest) << "after a step of " << step.count() << " h";
    EXPECT_EQ(client_->tell("release a"), "ours");
    const Lease others = other_->make_lock("a").acquire({.wait = 10s});
    EXPECT_GT(others.token().value(), token) << "after a step of " << step.count() << " h";
    newest = others.token().value();
  }
}

INSTANTIATE_TEST_SUITE_P(All, SteppedClock, testing::ValuesIn(all_services()), name_of_service);

}  // namespace
}  // namespace dlock::torture
