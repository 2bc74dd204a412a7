// Who waits is told for whom, and a service that hangs delays nothing.
#include "cli/wait_explainer.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <future>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <dlock/spi/backend.hpp>

#include "torture/rig/hang_guard.hpp"

namespace dlock::cli {
namespace {

using Question = Backend::Handler<LockInfo>;

// Knows nothing but to be asked about a lock, and leaves the answer to the test; except that it knows "ours", which the
// client holds that asks.
class AskedBackend final : public Backend {
 public:
  AskedBackend(const Capabilities& capabilities, std::promise<Question>& asked, std::string client)
      : capabilities_(capabilities), asked_(asked), client_(std::move(client)) {}
  [[nodiscard]] Capabilities capabilities() const noexcept override { return capabilities_; }
  void inspect(LockKind kind, const std::string& name, Question done) override {
    if (name == "ours") {
      done(LockInfo{.name = name, .held = true, .holder = client_, .kind = kind});
    } else {
      asked_.set_value(std::move(done));
    }
  }

  [[nodiscard]] std::unique_ptr<Contention> contend(const LockRequest& /*request*/, GrantSink& /*sink*/) override {
    ADD_FAILURE() << "nobody takes a lock here";
    return nullptr;
  }
  void renew(const Grant& /*grant*/, RenewHandler /*done*/) override {}
  void release(const Grant& /*grant*/, ReleaseHandler /*done*/) override {}

 private:
  const Capabilities capabilities_;
  std::promise<Question>& asked_;
  const std::string client_;
};

class WaitExplainerTest : public testing::Test {
 protected:
  // Without limit, so that whoever waits for the answer hangs.
  [[nodiscard]] Client client(Scope scope, bool can_inspect = true) {
    const Capabilities capabilities{.backend = "asked",
                                    .scope = scope,
                                    .fencing = FencingDurability::wall_clock,
                                    .semaphores = true,
                                    .can_inspect = can_inspect};
    return dlock::connect("asked://", {.response_timeout = forever},
                          [this, capabilities](BackendHost& host, const BackendConfig& config) {
                            executor = &host.executor();
                            return std::make_unique<AskedBackend>(capabilities, asked, config.holder);
                          });
  }
  // Waits until the explainer has asked, and answers.
  void answer(const Result<LockInfo>& info) {
    auto question = asked.get_future();
    ASSERT_EQ(question.wait_for(rig::hang_guard), std::future_status::ready);
    executor->post([done = question.get(), info] { done(info); });
  }
  // Waits until something was said; nothing may be said besides.
  [[nodiscard]] std::string said() {
    auto line = told.get_future();
    if (line.wait_for(rig::hang_guard) != std::future_status::ready) throw std::runtime_error("hang: nothing was said");
    return line.get();
  }
  [[nodiscard]] bool nothing_said() { return is_open(told); }
  template <class T>
  [[nodiscard]] static bool is_open(std::promise<T>& promise) {
    return promise.get_future().wait_for(std::chrono::seconds(0)) == std::future_status::timeout;
  }

  std::promise<Question> asked;
  std::promise<std::string> told;
  const std::function<void(std::string_view)> person = [this](std::string_view line) {
    told.set_value(std::string(line));
  };
  Executor* executor = nullptr;
  Reporter reporter{false};
};

const LockInfo held_by_somebody{.name = "job", .held = true, .holder = "host:1:label"};

TEST_F(WaitExplainerTest, SaysForWhomAsSoonAsTheServiceHasAnswered) {
  const Client asking = client(Scope::machine);
  WaitExplainer explainer(asking, reporter, person);
  explainer.explain({"job"});  // returns although there is no answer
  answer(held_by_somebody);
  EXPECT_EQ(said(), "waiting for \"job\", held by host:1:label");
}

TEST_F(WaitExplainerTest, SaysForHowLongItIsHeldWhereTheTokenTells) {
  const Client asking = client(Scope::machine);
  WaitExplainer explainer(asking, reporter, person);
  explainer.explain({"job"});
  const auto taken = std::chrono::system_clock::now().time_since_epoch() - std::chrono::minutes(60);
  LockInfo info = held_by_somebody;
  info.token =
      FencingToken(static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::microseconds>(taken).count()));
  answer(info);
  EXPECT_EQ(said(), "waiting for \"job\", held by host:1:label (for 1 h 0 min)");
}

TEST_F(WaitExplainerTest, SaysHowManyMoreHoldIt) {
  const Client asking = client(Scope::machine);
  WaitExplainer explainer(asking, reporter, person);
  explainer.explain({"job"}, LockKind::semaphore);
  answer(LockInfo{.name = "job", .held = true, .holder = "host:1:label", .holders = std::vector<HolderInfo>(3)});
  EXPECT_EQ(said(), "waiting for \"job\", held by host:1:label and 2 more");
}

TEST_F(WaitExplainerTest, OfSeveralLocksSaysWhichOneSomebodyElseHolds) {
  const Client asking = client(Scope::machine);
  WaitExplainer explainer(asking, reporter, person);
  explainer.explain({"ours", "job"});
  answer(held_by_somebody);
  EXPECT_EQ(said(), "waiting for \"ours\" and \"job\": \"job\" is held by host:1:label");
}

TEST_F(WaitExplainerTest, SaysNothingOnceTheWaitIsOver) {
  const Client asking = client(Scope::machine);
  {
    WaitExplainer explainer(asking, reporter, person);
    explainer.explain({"job"});
    explainer.wait_is_over();
    answer(held_by_somebody);
  }
  EXPECT_TRUE(nothing_said());
}

TEST_F(WaitExplainerTest, LeavesTroubleWithTheServiceToTheWait) {
  const Client asking = client(Scope::machine);
  WaitExplainer explainer(asking, reporter, person);
  explainer.explain({"job"});
  answer(Failure{errc::unavailable, "no answer in time"});
  EXPECT_EQ(said(), "waiting for \"job\"");
}

TEST_F(WaitExplainerTest, AsksAServiceOfTheNetworkThatIsConnected) {
  const Client asking = client(Scope::network);
  reporter.connection({ConnectionEvent::State::connected, {}});
  WaitExplainer explainer(asking, reporter, person);
  explainer.explain({"job"});
  answer(held_by_somebody);
  EXPECT_EQ(said(), "waiting for \"job\", held by host:1:label");
}

TEST_F(WaitExplainerTest, DoesNotAskAServiceOfTheNetworkThatIsNotConnected) {
  const Client unconnected = client(Scope::network);
  WaitExplainer(unconnected, reporter, person).explain({"job"});
  EXPECT_EQ(said(), "waiting for \"job\"");
  EXPECT_TRUE(is_open(asked));
}

TEST_F(WaitExplainerTest, DoesNotAskAServiceThatCannotSay) {
  const Client unable = client(Scope::machine, false);
  WaitExplainer(unable, reporter, person).explain({"job"});
  EXPECT_EQ(said(), "waiting for \"job\"");
  EXPECT_TRUE(is_open(asked));
}

}  // namespace
}  // namespace dlock::cli
