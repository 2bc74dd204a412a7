// Records the reports of a backend, to its host and about one acquire.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <dlock/spi/backend.hpp>

namespace dlock::test {

class RecordingHost final : public BackendHost {
 public:
  struct Loss {
    OwnerId owner;
    Failure why;
  };

  explicit RecordingHost(Executor& executor) : executor_(executor) {}
  Executor& executor() noexcept override { return executor_; }
  void extended(const OwnerId& owner, TimePoint valid_until) override {
    extensions.emplace_back(owner, valid_until);
    if (const auto call = on_extended) call(owner);  // which may replace itself
  }
  void lost(const OwnerId& owner, Failure why) override { losses.push_back({owner, std::move(why)}); }
  void connection(ConnectionEvent event) override { connections.push_back(event.state); }
  void warn(WarningEvent event) override { warnings.push_back(event); }
  OwnerId new_owner_id() override { return {executor_.random(), executor_.random()}; }

  std::function<void(const OwnerId& owner)> on_extended;

  std::vector<std::pair<OwnerId, TimePoint>> extensions;
  std::vector<Loss> losses;
  std::vector<ConnectionEvent::State> connections;
  std::vector<WarningEvent> warnings;

 private:
  Executor& executor_;
};

// One acquire and the reports about it.
struct Attempt final : GrantSink {
  void granted(Grant g) override {
    EXPECT_FALSE(grant) << "granted twice";
    grant = std::move(g);
    if (when_granted) when_granted();
  }
  void busy() override { ++busy_reports; }
  void unreachable(Failure why) override { unreachable_reports.push_back(std::move(why)); }
  void failed(Failure why) override {
    EXPECT_FALSE(failure) << "failed twice";
    failure = std::move(why);
  }
  [[nodiscard]] bool reported() const { return grant || failure || busy_reports > 0 || !unreachable_reports.empty(); }

  LockRequest request;
  std::function<void()> when_granted;
  std::optional<Grant> grant;
  int busy_reports = 0;
  std::vector<Failure> unreachable_reports;
  std::optional<Failure> failure;
  std::unique_ptr<Contention> contention;
};

struct Wish {
  std::string name = "lock";
  std::chrono::nanoseconds lease = std::chrono::seconds(10);
  bool wait = true;
  LockKind kind = LockKind::lock;
  Mode mode = Mode::exclusive;
  std::uint32_t permits = 1;
};
// As the core of a client called "test" begins it.
[[nodiscard]] inline std::unique_ptr<Attempt> begin_attempt(Backend& backend, RecordingHost& host, const Wish& wish) {
  auto attempt = std::make_unique<Attempt>();
  attempt->request = {.name = wish.name,
                      .owner = host.new_owner_id(),
                      .holder = "host:1:test",
                      .lease = wish.lease,
                      .wait = wish.wait,
                      .kind = wish.kind,
                      .mode = wish.mode,
                      .permits = wish.permits};
  attempt->contention = backend.contend(attempt->request, *attempt);
  return attempt;
}

// As one expectation: ASSERT_TRUE(failed(*attempt, errc::access_denied, "GRANT"));
[[nodiscard]] inline testing::AssertionResult failed(const Attempt& attempt, errc code, const std::string& words = {}) {
  if (!attempt.failure) return testing::AssertionFailure() << "it has not failed";
  const auto& [is, detail] = *attempt.failure;
  if (is == code && detail.find(words) != std::string::npos) return testing::AssertionSuccess();
  return testing::AssertionFailure() << "it has failed so: " << is.message() << ": " << detail;
}

// Only the lock of that owner was lost.
[[nodiscard]] inline testing::AssertionResult lost(const RecordingHost& host, const OwnerId& owner) {
  if (host.losses.size() == 1 && host.losses[0].owner == owner) return testing::AssertionSuccess();
  return testing::AssertionFailure() << host.losses.size() << " losses were reported";
}

}  // namespace dlock::test
