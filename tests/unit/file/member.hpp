// A client of the file backend that the test drives step by step: each has an executor of its own, so several of them
// are as good as several processes.
#pragma once

#include <gtest/gtest.h>
#include <poll.h>

#include <algorithm>
#include <chrono>
#include <system_error>

#include <dlock/spi/try_backend.hpp>

#include "backends/file/file_backend.hpp"
#include "tests/support/queued_engine.hpp"
#include "tests/support/recording_host.hpp"

namespace dlock::file::test {

// An engine that the test's own thread drives: it reads descriptors, runs tasks and lets timers fire only when told to.
class PollExecutor final : public dlock::test::QueuedEngine {
 public:
  PollExecutor() : QueuedEngine(4) {}

  // Runs all that is due: posted tasks, timers, and the descriptor while it is readable.
  void run() {
    for (QueuedEngine::run(); poll_for(0); QueuedEngine::run()) std::exchange(handler_, nullptr)(std::error_code());
  }
  // Lets time pass, stopping at every timer on the way.
  void advance(std::chrono::nanoseconds by) {
    run();
    for (const TimePoint end = now() + by; now() < end; run()) {
      clock_.advance(std::min(end, next_timer().value_or(end)) - now());
    }
  }
  // Lets time pass as if the process had been stopped.
  void sleep_through(std::chrono::nanoseconds by) {
    clock_.advance(by);
    run();
  }
  // Waits until the descriptor is readable, or for that long.
  void wait(std::chrono::milliseconds limit) const { (void)poll_for(static_cast<int>(limit.count())); }
  // The descriptor fails.
  void fail() { std::exchange(handler_, nullptr)(std::make_error_code(std::errc::io_error)); }
  bool refuse_descriptors = false;

  [[nodiscard]] const Clock& clock() const noexcept override { return clock_; }
  [[nodiscard]] std::unique_ptr<dlock::Descriptor> watch(int fd) override {
    if (refuse_descriptors) throw Error(errc::unavailable, "no room");
    fd_ = fd;
    return std::make_unique<Watched>(*this);
  }
  bool wait(util::Event& /*event*/, std::optional<std::chrono::nanoseconds> /*limit*/) override {
    throw std::logic_error("only tasks use it");
  }

 private:
  class Watched final : public dlock::Descriptor {
   public:
    explicit Watched(PollExecutor& executor) : executor_(executor) {}
    ~Watched() override { executor_.handler_ = nullptr; }
    void async_wait(Interest, std::function<void(std::error_code)> handler) override {
      executor_.handler_ = std::move(handler);
    }

   private:
    PollExecutor& executor_;
  };

  [[nodiscard]] bool poll_for(int milliseconds) const {
    pollfd ready{.fd = handler_ ? fd_ : -1, .events = POLLIN, .revents = 0};
    return ::poll(&ready, 1, milliseconds) > 0;
  }

  ManualClock clock_;
  int fd_ = -1;
  std::function<void(std::error_code)> handler_;
};

class Member {
 public:
  Member(const std::string& locks, LockKind kind, std::uint64_t number)
      : backend(host, {.path = locks}), space_(kind), number_(number) {}

  [[nodiscard]] LockRequest request(Mode mode = Mode::exclusive, bool wait = false, const std::string& name = "a") {
    return {.name = name,
            .owner = OwnerId(number_, ++asked_),
            .holder = "host:" + std::to_string(number_) + ":l",
            .lease = std::chrono::seconds(1),
            .wait = wait,
            .kind = space_,
            .mode = mode,
            .permits = permits,
            .value = value};
  }
  TryOutcome ask(const LockRequest& request) {
    TryOutcome answer{.status = TryOutcome::Status::busy};
    backend.try_acquire(request, [&](TryOutcome outcome) { answer = std::move(outcome); });
    return answer;
  }
  // Tries once, and keeps what was granted.
  bool enter(Mode mode = Mode::exclusive, const std::string& name = "a") {
    TryOutcome outcome = ask(request(mode, false, name));
    EXPECT_NE(outcome.status, TryOutcome::Status::failed) << outcome.failure.detail;
    const bool granted = outcome.status == TryOutcome::Status::granted;
    if (granted) grants.push_back(std::move(outcome.grant));
    return granted;
  }
  bool read() { return enter(Mode::shared); }
  bool release(const Grant& grant) {
    bool ours = false;
    backend.release(grant,
                    [&](const ReleaseOutcome& outcome) { ours = outcome.status == ReleaseOutcome::Status::released; });
    return ours;
  }
  // The lease that it got first.
  bool leave() {
    if (grants.empty()) return false;
    const Grant first = grants.front();
    grants.erase(grants.begin());
    return release(first);
  }
  // A watch that counts its calls and does nothing about them.
  [[nodiscard]] std::unique_ptr<Watch> watch(int& called) {
    auto made = backend.watch(space_, "a", [&called] { ++called; });
    executor.run();
    return made;
  }
  [[nodiscard]] LockInfo inspect() {
    return answer_of<LockInfo>([this](auto done) { backend.inspect(space_, "a", done); });
  }
  [[nodiscard]] std::vector<LockInfo> list() {
    return answer_of<std::vector<LockInfo>>([this](auto done) { backend.list(space_, done); });
  }
  [[nodiscard]] std::vector<std::string> forget() {
    const Forgetting what{.name = "a", .idle = {}, .kind = space_};
    return answer_of<std::vector<std::string>>([&](auto done) { backend.forget(what, done); });
  }
  [[nodiscard]] Finding finding(const std::string& check) {
    Finding found{Finding::Severity::error, check, "there is no such check"};
    backend.diagnose([&](const Result<std::vector<Finding>>& findings) {
      for (const Finding& each : findings.value()) {
        if (each.check == check) found = each;
      }
    });
    return found;
  }
  // Real time for the kernel's events, and as much of the executor's for timers, until the condition holds.
  [[nodiscard]] bool advance_until(std::chrono::milliseconds limit, const std::function<bool()>& condition) {
    for (std::chrono::milliseconds passed(0); passed < limit; passed += std::chrono::milliseconds(1)) {
      if (condition()) return true;
      executor.wait(std::chrono::milliseconds(2));
      executor.advance(std::chrono::milliseconds(1));
    }
    return condition();
  }

  PollExecutor executor;
  dlock::test::RecordingHost host{executor};
  FileBackend backend;
  std::uint32_t permits = 1;
  std::string value;
  std::vector<Grant> grants;

 private:
  template <class T>
  static T answer_of(const std::function<void(Backend::Handler<T>)>& ask) {
    T value{};
    ask([&](Result<T> answer) {
      EXPECT_TRUE(answer.ok()) << answer.failure().detail;
      if (answer.ok()) value = std::move(answer.value());
    });
    return value;
  }

  const LockKind space_;
  const std::uint64_t number_;
  std::uint64_t asked_ = 0;
};

// An acquire that waits: tries, watches, and tries again whenever it is woken, as the ready-made contention does, but
// without its polling.
class Waiting {
 public:
  explicit Waiting(Member& member, Mode mode = Mode::exclusive)
      : member_(member), request_(member.request(mode, true)) {
    attempt();
    if (outcome.status != TryOutcome::Status::busy) return;
    watch_ = member_.backend.wait_for(request_, [this] {
      ++woken;
      attempt();
    });
    attempt();
    member_.executor.run();
  }
  void give_up() { watch_.reset(); }
  // Whether it has got the lock, once everything has come through.
  [[nodiscard]] bool in() {
    member_.executor.run();
    return outcome.status == TryOutcome::Status::granted;
  }
  bool leave() { return member_.release(outcome.grant); }

  TryOutcome outcome{.status = TryOutcome::Status::busy};
  int woken = 0;

 private:
  void attempt() {
    if (outcome.status != TryOutcome::Status::busy) return;
    outcome = member_.ask(request_);
    // The contention goes as soon as it is granted, a task later.
    if (outcome.status != TryOutcome::Status::busy) member_.executor.post([this] { watch_.reset(); });
  }

  Member& member_;
  const LockRequest request_;
  std::unique_ptr<Watch> watch_;
};

}  // namespace dlock::file::test
