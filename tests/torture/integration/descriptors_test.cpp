// A client that can open nothing any more: it says so, keeps what it holds, and goes on when it can.
#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <string>

#include <dlock/dlock.hpp>

#include "tests/torture/client/commanded_client.hpp"
#include "tests/torture/integration/services.hpp"
#include "torture/nemesis/used_up_descriptors.hpp"

namespace dlock::torture {
namespace {

using namespace std::chrono_literals;

class NoDescriptors : public testing::TestWithParam<ServiceKind> {
 protected:
  void SetUp() override {
    std::string why_not;
    if (!UsedUpDescriptors::available(why_not)) GTEST_SKIP() << "needs privilege: " << why_not;
    service_ = GetParam().start();
    client_ = std::make_unique<CommandedClient>(service_.url);
    other_ = std::make_unique<Client>(connect(service_.url));
  }

  Service service_;
  std::unique_ptr<CommandedClient> client_;
  std::unique_ptr<Client> other_;
};

TEST_P(NoDescriptors, ClientThatCannotConnect_ReportsItAndRecovers) {
  {
    const UsedUpDescriptors none_left(client_->pid());
    for (const char* command : {"acquire a 0", "acquire a 300"}) {
      const std::string answer = client_->tell(command);
      EXPECT_TRUE(answer.starts_with("error the lock service is unavailable | ")) << answer;
      EXPECT_NE(answer.find("Too many open files"), std::string::npos) << answer;
    }
    EXPECT_TRUE(client_->running());
  }
  const std::string answer = client_->tell("acquire a 10000");
  EXPECT_TRUE(answer.starts_with("granted a ")) << answer;
  EXPECT_EQ(client_->tell("release a"), "ours");
}

// The other one holds what it waits for, for longer than any lease.
TEST_P(NoDescriptors, Holder_KeepsItsLock) {
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
  }
  ASSERT_EQ(client_->tell("wait b"), "waiting");
  EXPECT_TRUE(others.release());
  EXPECT_GT(std::stoull(client_->await_event("granted b ")), others.token().value());
  EXPECT_EQ(client_->tell("release a"), "ours");
}

TEST_P(NoDescriptors, Holder_ReleasesItsLock) {
  ASSERT_TRUE(client_->tell("acquire a 10000").starts_with("granted a ")) << client_->said();
  const UsedUpDescriptors none_left(client_->pid());
  EXPECT_EQ(client_->tell("release a"), "ours");
  EXPECT_TRUE(other_->make_lock("a").try_acquire_for(10s).has_value());
}

// It began to wait when there was nothing left to open.
TEST_P(NoDescriptors, Waiter_IsGrantedTheLockLater) {
  Lease others = other_->make_lock("b").acquire({.wait = 10s});
  {
    const UsedUpDescriptors none_left(client_->pid());
    ASSERT_EQ(client_->tell("wait b"), "waiting");
    EXPECT_TRUE(client_->tell("acquire c 1000").starts_with("error ")) << client_->said();
    EXPECT_FALSE(client_->had_event("denied ")) << client_->said();
  }
  EXPECT_TRUE(others.release());
  EXPECT_GT(std::stoull(client_->await_event("granted b ")), others.token().value());
}

INSTANTIATE_TEST_SUITE_P(All, NoDescriptors, testing::ValuesIn(all_services()),
                         [](const auto& service) { return service.param.name; });

}  // namespace
}  // namespace dlock::torture
