// A thread that works under a lease and ends on its own token only, as the page about the API shows it.
#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <stop_token>
#include <thread>

#include <dlock/client.hpp>

#include "tests/support/simple_backend.hpp"
#include "torture/rig/hang_guard.hpp"
#include "util/event.hpp"

namespace dlock {
namespace {

using namespace std::chrono_literals;

class WorkerTest : public testing::Test {
 protected:
  // Until it is asked to stop.
  void work(const std::stop_token& stop) {
    util::Event asked;
    const std::stop_callback on_stop(stop, [&] { asked.set(); });
    asked.wait();  // a test that fails to ask hangs
    ended_.set();
  }

  std::shared_ptr<test::SimpleService> service_ = std::make_shared<test::SimpleService>();
  std::shared_ptr<ManualClock> clock_ = std::make_shared<ManualClock>();
  Client client_ = connect("simple://", {.clock = clock_}, service_->factory());
  DistributedLock lock_ = client_.make_lock("x");
  util::Event ended_;
};

TEST_F(WorkerTest, EndsWithTheScope) {
  {
    const Lease lease = lock_.acquire();
    std::jthread worker([this](const std::stop_token& stop) { work(stop); });
    const std::stop_callback stop(lease.ended(), [&] { worker.request_stop(); });
  }
  EXPECT_TRUE(ended_.is_set());
  EXPECT_FALSE(service_->held("x"));
}

TEST_F(WorkerTest, EndsWithARelease) {
  Lease lease = lock_.acquire();
  std::jthread worker([this](const std::stop_token& stop) { work(stop); });
  const std::stop_callback stop(lease.ended(), [&] { worker.request_stop(); });
  EXPECT_TRUE(lease.release());
  EXPECT_TRUE(ended_.wait(rig::hang_guard));
}

TEST_F(WorkerTest, EndsWithALoss) {
  const Lease lease = lock_.acquire({.renew = false});
  std::jthread worker([this](const std::stop_token& stop) { work(stop); });
  const std::stop_callback stop(lease.ended(), [&] { worker.request_stop(); });
  clock_->advance(1min);
  EXPECT_TRUE(ended_.wait(rig::hang_guard));
}

}  // namespace
}  // namespace dlock
