// Whoever looks on at an election hears of every change, from a real server.
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include <dlock/spi/backend.hpp>

#include "backends/zookeeper/zookeeper_backend.hpp"
#include "engine/thread_engine.hpp"
#include "tests/support/recording_host.hpp"
#include "util/process.hpp"
#include "zookeeper/zookeeper_test.hpp"

namespace dlock::test {

namespace {

constexpr auto place = "/dlock.elect/leader";

// A backend as a client has it, driven from the test's thread.
class Candidate final {
 public:
  explicit Candidate(const std::string& url)
      : engine_(engine::ThreadEngine::start(boottime_clock(), util::kernel_random)), host_(*engine_) {
    on_engine([&] {
      backend_ = zookeeper::make_zookeeper_backend(host_, {.url = Url::parse(url),
                                                           .holder = "host:1:test",
                                                           .lease = 30s,
                                                           .response_timeout = 10s,
                                                           .connect_timeout = 10s});
    });
  }
  ~Candidate() {
    on_engine([&] {
      watch_.reset();
      attempt_.contention.reset();
      backend_.reset();
    });
    engine_->stop();
  }
  Candidate(const Candidate&) = delete;
  Candidate& operator=(const Candidate&) = delete;

  void campaign(const std::string& value) {
    on_engine([&] {
      attempt_.request = {.name = "leader",
                          .owner = host_.new_owner_id(),
                          .holder = "host:1:test",
                          .lease = 30s,
                          .wait = true,
                          .kind = LockKind::election,
                          .value = value};
      attempt_.contention = backend_->contend(attempt_.request, attempt_);
    });
  }
  // Those who look on may hear of it first.
  void await_lead() {
    await("who was elected is not told", [&] {
      bool leads = false;
      on_engine([&] { leads = attempt_.grant.has_value(); });
      return leads;
    });
  }
  void resign() {
    await_lead();
    on_engine([&] { backend_->release(*attempt_.grant, [](const ReleaseOutcome&) {}); });
  }
  // Returns when the watch has come into effect.
  void observe() {
    on_engine([&] { watch_ = backend_->watch(LockKind::election, "leader", [this] { look(); }); });
    await("whoever looks on is not told that it does", [&] {
      int looks = 0;
      on_engine([&] { looks = looks_; });
      return looks > 0;
    });
  }
  // The newest that was seen by whoever looks only when it is told to; nullopt: nobody leads, or nothing was seen yet.
  [[nodiscard]] std::optional<std::string> seen() {
    std::optional<std::string> seen;
    on_engine([&] { seen = seen_; });
    return seen;
  }
  void await_seen(const std::optional<std::string>& value) {
    await("the leader is not seen to be " + value.value_or("nobody"), [&] { return seen() == value; });
  }

 private:
  void look() {
    backend_->inspect(LockKind::election, "leader", [this](const Result<LockInfo>& info) {
      ++looks_;
      if (info.ok()) seen_ = info.value().held ? std::optional(info.value().value) : std::nullopt;
    });
  }
  void on_engine(const std::function<void()>& task) {
    Event done;
    engine_->post([&] {
      task();
      done.set();
    });
    if (!done.wait_for(conformance::guard())) throw conformance::Hang("a task");
  }

  std::shared_ptr<engine::ThreadEngine> engine_;
  RecordingHost host_;
  std::unique_ptr<Backend> backend_;
  Attempt attempt_;
  std::unique_ptr<Watch> watch_;
  std::optional<std::string> seen_;
  int looks_ = 0;
};

class ElectionsTest : public ZooKeeperStrategyTest {
 protected:
  [[nodiscard]] std::string url(const std::string& parameters = long_session) const {
    return server.url(with_strategy(parameters));
  }
};
INSTANTIATE_TEST_SUITE_P(, ElectionsTest, all_strategies(), Room::strategy_name);

TEST_P(ElectionsTest, WhoeverLooksOnSeesEveryLeaderFromTheFirstOn) {
  Candidate observer(url());
  observer.observe();
  // Before there is anything that could be watched.
  EXPECT_FALSE(zk.get(place));
  Candidate first(url());
  first.campaign("one");
  observer.await_seen("one");
  first.await_lead();
  Candidate second(url());
  second.campaign("two");
  first.resign();
  observer.await_seen("two");
  second.resign();
  observer.await_seen(std::nullopt);
  zk.remove_all("/dlock.elect");  // as the servers do after a while
  Candidate third(url());
  third.campaign("three");
  observer.await_seen("three");
}

TEST_P(ElectionsTest, TheDeathOfALeaderIsSeen) {
  Candidate observer(url());
  observer.observe();
  Candidate first(url());
  first.campaign("one");
  observer.await_seen("one");
  const std::string node = queued() ? std::string(place) + "/" + zk.children(place).value().at(0) : std::string(place);
  Candidate second(url());
  second.campaign("two");
  end_session_of(server.address(), node);
  observer.await_seen("two");
}

TEST_P(ElectionsTest, AnObserverSurvivesARestartOfTheServer) {
  Candidate observer(url());
  observer.observe();
  Candidate first(url());
  server.stop();
  server.start();
  first.campaign("one");
  observer.await_seen("one");
}

}  // namespace

}  // namespace dlock::test
