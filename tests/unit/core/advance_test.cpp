// ManualClock::advance() as a program's own tests use it: with the embedded backends, real engines and real threads.
#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include <dlock/dlock.hpp>

#include "torture/rig/scratch_directory.hpp"

namespace dlock {
namespace {

using namespace std::chrono_literals;

enum class Service { memory, file };

// The tests read without a lock, because advance() has waited for the handlers that write.
class AdvanceTest : public testing::TestWithParam<Service> {
 protected:
  [[nodiscard]] Client make(ClientOptions options = {}) const {
    options.clock = clock_;
    return connect(GetParam() == Service::memory ? "memory://advance" : "file://" + scratch_.path(),
                   std::move(options));
  }

  rig::ScratchDirectory scratch_;
  std::shared_ptr<ManualClock> clock_ = std::make_shared<ManualClock>();
};

INSTANTIATE_TEST_SUITE_P(All, AdvanceTest, testing::Values(Service::memory, Service::file),
                         [](const auto& each) { return each.param == Service::memory ? "Memory" : "File"; });

struct CountingObserver final : Observer {
  void lost(const LostEvent& /*event*/) override { ++losses; }
  int losses = 0;
};

TEST_P(AdvanceTest, LossesHandlersAndObservers_HaveRunWhenItReturns) {
  for (int repetition = 0; repetition < 50; ++repetition) {
    const auto observer = std::make_shared<CountingObserver>();
    Client client = make({.observer = observer});
    // Names enough for all of the client's engines.
    constexpr int names = 32;
    std::vector<Lease> leases;
    int lost = 0;
    std::vector<std::unique_ptr<std::stop_callback<std::function<void()>>>> on_loss;
    for (int i = 0; i < names; ++i) {
      leases.push_back(client.make_lock("job" + std::to_string(i)).acquire({.lease = 10s, .renew = false}));
      on_loss.push_back(
          std::make_unique<std::stop_callback<std::function<void()>>>(leases.back().lost(), [&] { ++lost; }));
    }
    const Lease held = client.make_lock("held").acquire();
    DistributedLock free = client.make_lock("free");
    std::optional<std::error_code> ended;
    bool released = false;
    client.make_lock("held").async_acquire({.wait = 10s}, [&](std::error_code why, const Lease& /*none*/) {
      ended = why;
      free.async_acquire({}, [&](std::error_code /*ec*/, Lease lease) {
        const auto kept = std::make_shared<Lease>(std::move(lease));
        kept->async_release([&, kept](std::error_code /*ec*/, bool was_ours) { released = was_ours; });
      });
    });
    clock_->advance(9s);
    ASSERT_EQ(lost, 0);
    ASSERT_FALSE(ended);
    clock_->advance(1s);
    ASSERT_EQ(lost, names);
    ASSERT_EQ(observer->losses, names);
    ASSERT_EQ(ended, errc::timed_out);
    ASSERT_TRUE(released) << "by what a handler started";
  }
}

TEST(AdvanceOfTwoClients, HandOver_HasArrivedWhenItReturns) {
  const auto clock = std::make_shared<ManualClock>();
  for (int repetition = 0; repetition < 50; ++repetition) {
    const Client one = connect("memory://two", {.clock = clock});
    const Client two = connect("memory://two", {.clock = clock});
    const Lease first = one.make_lock("job").acquire({.lease = 10s, .renew = false});
    Lease second;
    Lease third;
    two.make_lock("job").async_acquire({.lease = 10s, .renew = false},
                                       [&](std::error_code /*ec*/, Lease lease) { second = std::move(lease); });
    one.make_lock("job").async_acquire({}, [&](std::error_code /*ec*/, Lease lease) { third = std::move(lease); });
    clock->advance(10s);
    ASSERT_TRUE(second.held());
    ASSERT_FALSE(third.held());
    clock->advance(10s);
    ASSERT_FALSE(second.held());
    ASSERT_TRUE(third.held());
  }
}

}  // namespace
}  // namespace dlock
