// A client whose backend answers at once spreads its names over several instances of it.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <dlock/client.hpp>

#include "core/client/client_core.hpp"
#include "engine/thread_engine.hpp"
#include "tests/support/simple_backend.hpp"
#include "torture/rig/hang_guard.hpp"
#include "torture/rig/queued_engine.hpp"
#include "util/process.hpp"

namespace dlock::detail {
namespace {

using namespace std::chrono_literals;

// What the instances of one client do. Any thread.
struct Instances {
  const std::shared_ptr<test::SimpleService> service = std::make_shared<test::SimpleService>();
  std::atomic<int> made = 0;
  std::atomic<int> gone = 0;
  std::atomic<int> closed = 0;
  bool refuse_another = false;
  std::mutex mutex;
  std::set<std::pair<std::string, int>> asked;  // names, and which instance was asked for them

  [[nodiscard]] BackendFactory factory();
};

class Instance final : public test::SimpleBackend {
 public:
  Instance(Instances& all, BackendHost& host) : SimpleBackend(host, all.service), all_(all), number_(all.made++) {}
  ~Instance() override { ++all_.gone; }

  [[nodiscard]] Capabilities capabilities() const noexcept override {
    auto capabilities = SimpleBackend::capabilities();
    capabilities.immediate = true;
    return capabilities;
  }
  [[nodiscard]] std::unique_ptr<Backend> another(BackendHost& host) const override {
    if (all_.refuse_another) throw Error(errc::unavailable, "no descriptors");
    return std::make_unique<Instance>(all_, host);
  }
  void try_acquire(const LockRequest& request, TryHandler done) override {
    {
      const std::lock_guard lock(all_.mutex);
      all_.asked.emplace(request.name, number_);
    }
    SimpleBackend::try_acquire(request, std::move(done));
  }
  void close(std::function<void()> done) override {
    ++all_.closed;
    SimpleBackend::close(std::move(done));
  }

 private:
  Instances& all_;
  const int number_;
};

BackendFactory Instances::factory() {
  return [this](BackendHost& host, const BackendConfig&) { return std::make_unique<Instance>(*this, host); };
}

[[nodiscard]] bool several_processors() {
  return std::thread::hardware_concurrency() > 1;
}

// Its siblings are busy from the beginning, as when another thread runs a sibling's timers for it.
class EngineWithBusySiblings final : public rig::QueuedEngine {
 public:
  EngineWithBusySiblings() : QueuedEngine(1) {}

  [[nodiscard]] const Clock& clock() const noexcept override { return clock_; }
  bool wait(util::Event& event, std::optional<std::chrono::nanoseconds> /*limit*/) override {
    run();
    return event.is_set();
  }
  [[nodiscard]] std::shared_ptr<engine::Engine> sibling() override {
    siblings.push_back(std::make_shared<EngineWithBusySiblings>());
    siblings.back()->set_busy(true);
    return siblings.back();
  }

  std::vector<std::shared_ptr<EngineWithBusySiblings>> siblings;

 private:
  ManualClock clock_;
};

class ShardsTest : public testing::Test {
 protected:
  // Takes and releases a lock of each of so many names, twice.
  void use(int names) {
    for (int round = 0; round < 2; ++round) {
      for (int i = 0; i < names; ++i) {
        DistributedLock lock = client_->make_lock("name " + std::to_string(i));
        Lease lease = lock.acquire();
        EXPECT_TRUE(lease.held());
        EXPECT_FALSE(lock.try_acquire().has_value());
        EXPECT_TRUE(lease.release());
      }
    }
  }

  Instances instances_;
  std::unique_ptr<Client> client_ =
      std::make_unique<Client>(connect("shards://", {.label = "test"}, instances_.factory()));
};

TEST_F(ShardsTest, ANameAlwaysBelongsToTheSameInstance) {
  EXPECT_EQ(instances_.made, 1) << "others are made when they are wanted";
  use(100);
  EXPECT_EQ(instances_.asked.size(), 100U) << "no name at two of them";
  if (several_processors()) {
    EXPECT_GT(instances_.made, 1);
  }
}

TEST_F(ShardsTest, AnEngineThatIsBusyAtFirstGetsItsInstanceAllTheSame) {
  const auto engine = std::make_shared<EngineWithBusySiblings>();
  const auto core = ClientCore::create(engine, Url::parse("shards://"), {.label = "test"}, instances_.factory());
  std::string name = "x";
  while (core->shard_of(name) == core->main()) name += "x";
  const auto& shard = core->shard_of(name);
  const int made = instances_.made;
  for (const auto& sibling : engine->siblings) sibling->run();
  EXPECT_TRUE(shard->backend().capabilities().immediate);
  EXPECT_EQ(instances_.made, made);
  for (const auto& sibling : engine->siblings) sibling->set_busy(false);
  core->close();
  EXPECT_EQ(instances_.gone, made - 1) << "the fixture has one of its own";
}

TEST_F(ShardsTest, StatsAreOfAllOfThem) {
  use(100);
  EXPECT_EQ(client_->stats().acquired, 200U);
  EXPECT_EQ(client_->stats().busy, 200U);
  EXPECT_EQ(client_->stats().released, 200U);
  EXPECT_EQ(client_->stats().held, 0U);
}

TEST_F(ShardsTest, TheFirstServesNamesOfOneThatCannotBeMade) {
  instances_.refuse_another = true;
  use(100);
  EXPECT_EQ(instances_.made, 1);
  instances_.refuse_another = false;
  use(100);
  EXPECT_EQ(instances_.made, 1) << "for good: a name never moves";
}

TEST_F(ShardsTest, TheClientClosesAllOfThem) {
  use(100);
  std::vector<Lease> leases;
  for (int i = 0; i < 20; ++i) leases.push_back(client_->make_lock("held " + std::to_string(i)).acquire());
  client_.reset();
  EXPECT_EQ(instances_.closed, instances_.made);
  EXPECT_EQ(instances_.gone, instances_.made);
  for (const Lease& lease : leases) {
    EXPECT_FALSE(lease.held());
    EXPECT_TRUE(lease.lost().stop_requested());
  }
}

TEST_F(ShardsTest, AHandlerMayCloseThemAll) {
  use(100);
  std::vector<Lease> leases;
  for (int i = 0; i < 20; ++i) leases.push_back(client_->make_lock("held " + std::to_string(i)).acquire());
  util::Event closed;
  DistributedLock lock = client_->make_lock("x");
  lock.async_acquire({}, [&](std::error_code, Lease) {
    client_.reset();
    closed.set();
  });
  ASSERT_TRUE(closed.wait(rig::hang_guard));
  while (instances_.gone < instances_.made) std::this_thread::yield();
  EXPECT_EQ(instances_.closed, instances_.made);
  for (const Lease& lease : leases) EXPECT_FALSE(lease.held());
}

TEST_F(ShardsTest, ClosingRacesWithNamesThatAreAskedForTheFirstTime) {
  for (int round = 0; round < 50; ++round) {
    Instances instances;
    auto client = std::make_unique<Client>(connect("shards://", {.label = "test"}, instances.factory()));
    std::vector<DistributedLock> locks;
    for (int i = 0; i < 4; ++i) locks.push_back(client->make_lock("early " + std::to_string(i)));
    std::vector<std::thread> threads;
    for (auto& lock : locks) {
      threads.emplace_back([&lock] {
        for (int i = 0; i < 50; ++i) {
          std::error_code ec;
          const Lease lease = lock.acquire({}, ec);
          if (ec) {
            EXPECT_EQ(ec, errc::closed);
            return;
          }
        }
      });
    }
    client.reset();
    for (auto& thread : threads) thread.join();
    EXPECT_EQ(instances.gone, instances.made);
  }
}

TEST_F(ShardsTest, ThreadsWithNamesOfTheirOwnShareAClient) {
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([&, t] {
      DistributedLock own = client_->make_lock("of thread " + std::to_string(t));
      DistributedLock shared = client_->make_lock("shared");
      for (int i = 0; i < 200; ++i) {
        const Lease lease = own.acquire();
        EXPECT_TRUE(lease.held());
        if (i % 20 == 0) (void)shared.try_acquire();
      }
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_GE(client_->stats().acquired, 1600U);
  EXPECT_EQ(client_->stats().held, 0U);
}

}  // namespace
}  // namespace dlock::detail
