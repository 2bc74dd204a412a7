// Shared by all tests of the contract: fixtures, threads and an observer.
#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <exception>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <thread>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include <dlock/conformance/suite.hpp>
#include <dlock/dlock.hpp>

#include "suite/kind.hpp"
#include "suite/wait.hpp"
#include "suite/worker.hpp"

namespace dlock::conformance {

// Short, so that a test is quick that lets them expire in real time.
inline constexpr std::chrono::milliseconds impatience(100);
// Long enough for several attempts of an impatient client.
inline constexpr std::chrono::milliseconds several_attempts(500);
inline ClientOptions impatient() {
  return {.response_timeout = impatience, .connect_timeout = impatience, .close_timeout = impatience};
}

// Joined at its destruction; an exception from its body fails the test, instead of ending the program.
class Thread {
 public:
  // body(std::stop_token) or body(); the stop is requested before the thread is joined.
  template <class Body>
  explicit Thread(Body body)
      : thread_([body = std::move(body)](const std::stop_token& stop) mutable {
          try {
            if constexpr (std::is_invocable_v<Body&, std::stop_token>) {
              body(stop);
            } else {
              body();
            }
          } catch (const std::exception& e) {
            ADD_FAILURE() << "a thread of the test ended with: " << e.what();
          }
        }) {}

 private:
  std::jthread thread_;
};

// Runs body(0) to body(count - 1) concurrently, and waits for them.
template <class Count, class Body>
void run_threads(Count count, const Body& body) {
  std::vector<Thread> threads;
  for (Count i = 0; i < count; ++i) threads.emplace_back([&body, i] { body(i); });
}

// Protected by the lock: a counter with a non-atomic increment, and a record of who is inside.
class Room {
 public:
  void visit(bool held = true) {
    if (occupied_.exchange(true) || !held) meetings_.fetch_add(1);
    const int value = counter_.load(std::memory_order_relaxed);
    std::this_thread::yield();
    counter_.store(value + 1, std::memory_order_relaxed);
    occupied_.store(false);
  }
  [[nodiscard]] int counter() const { return counter_.load(); }
  // The violations: two at once, or one that does not hold the lock.
  [[nodiscard]] int meetings() const { return meetings_.load(); }

 private:
  std::atomic<int> counter_{0};
  std::atomic<int> meetings_{0};
  std::atomic<bool> occupied_{false};
};

// Counts the events of leases.
class RecordingObserver final : public Observer {
 public:
  void renewed(const RenewedEvent& event) override {
    of(renewals_, event.name).set();
    of(news_, event.name).set();
  }
  void lost(const LostEvent& event) override {
    {
      const std::scoped_lock lock(mutex_);
      last_loss_ = event;
    }
    of(losses_, event.name).set();
    of(news_, event.name).set();
  }
  void released(const ReleasedEvent& event) override { of(releases_, event.name).set(); }

  [[nodiscard]] Event& renewals(const std::string& name) { return of(renewals_, name); }
  [[nodiscard]] Event& losses(const std::string& name) { return of(losses_, name); }
  // Renewals and losses.
  [[nodiscard]] Event& news(const std::string& name) { return of(news_, name); }
  [[nodiscard]] Event& releases(const std::string& name) { return of(releases_, name); }
  [[nodiscard]] LostEvent last_loss() const {
    const std::scoped_lock lock(mutex_);
    return last_loss_;
  }

 private:
  using Events = std::map<std::string, Event>;
  Event& of(Events& events, const std::string& name) {
    const std::scoped_lock lock(mutex_);
    return events[name];
  }

  mutable std::mutex mutex_;
  Events renewals_;
  Events losses_;
  Events news_;
  Events releases_;
  LostEvent last_loss_;
};

// The part of a subject that GoogleTest prints.
void PrintTo(const Subject& subject, std::ostream* out);
void PrintTo(const Kind& kind, std::ostream* out);

class ContractBase : public ::testing::Test {
 protected:
  [[nodiscard]] virtual const Subject& subject() const = 0;
  [[nodiscard]] virtual const Kind& kind() const { return kinds().front(); }
  // Whether waiters of this kind are not woken, although those of other kinds may be.
  [[nodiscard]] bool polls() {
    return caps().sharers_poll && (kind().kind == LockKind::read_write || kind().kind == LockKind::semaphore);
  }
  void SetUp() override;
  void TearDown() override;

  [[nodiscard]] Fixture& fixture() { return *fixture_; }
  [[nodiscard]] const Capabilities& caps();
  // A message for GTEST_SKIP if the fixture lacks a feature.
  [[nodiscard]] std::optional<std::string> lacks(Feature feature) const;

  // A client that lives until the end of the test, or until close().
  Client& client(ClientOptions options = {}, Link link = Link::steady);
  void close(Client& client);

  // A lock of the tested kind, or of a different one; lives until the end of the test. By default its name is name().
  Lock& lock_of(const Kind& kind, const Client& client, const std::string& name);
  Lock& lock_of(const Client& client, const std::string& name) { return lock_of(kind(), client, name); }
  Lock& lock_of(const Client& client) { return lock_of(client, name()); }
  // One lock for each of two clients.
  std::pair<Lock&, Lock&> two_locks();

  // Takes that lock of the tested kind away from its holder; see Fixture.
  void kill_hold(const std::string& name) { fixture_->kill_hold(kind().kind, name); }

  // A unique name; the same tail gives the same name within one test.
  [[nodiscard]] std::string name(std::string_view tail = "") const;

  // From now on, all that client() makes shares a clock that stands still, if the fixture has one.
  void step_time_if_possible();
  [[nodiscard]] bool stepping() const noexcept { return clock_ != nullptr; }
  // On the clock of the clients made by client().
  [[nodiscard]] TimePoint now() const;
  // The lease for tests that let it expire: long if time can be stepped, else short.
  [[nodiscard]] std::chrono::nanoseconds lease();
  // Options for a lease of that length.
  [[nodiscard]] AcquireOptions fixed();    // that is not renewed
  [[nodiscard]] AcquireOptions renewed();  // that is

  // A lease that lasts longer than the delay of late answers; for ClientOptions::lease.
  [[nodiscard]] std::chrono::nanoseconds long_lease();
  // How long the service keeps a lock without further requests: for the requested lease, or as long as the client's
  // session; not at all if a lock ends with its process.
  [[nodiscard]] std::chrono::nanoseconds kept_for(const Client& of, std::chrono::nanoseconds asked) const;
  // The permitted delay after this time on a busy machine: a few leases, or half of the time if that is more. Hangs are
  // the guard's matter.
  [[nodiscard]] std::chrono::nanoseconds slack(std::chrono::nanoseconds limit);
  // Fails unless now() is at most limit + slack(limit) after the start.
  void expect_within(std::chrono::nanoseconds limit, TimePoint start, std::string_view what);

  // Fails unless a wait for an unreachable service, long enough for several attempts, ends with that error and at its
  // deadline.
  void expect_wait_to_end(const std::function<void()>& disturb);

  // Fails unless the call returns in time while the service is stalled, and the lock can be acquired afterwards.
  void expect_bounded_while_stalled(std::string_view what, const std::function<void()>& call);

  // Moves the clock; only where stepping().
  void step(std::chrono::nanoseconds by);
  // Waits until the engines of all clients made by client() have done what was due, except for pending answers.
  void settle();
  // Lets time pass, in small steps, until the event has happened. Throws Hang.
  void pass_until(const Event& event, const std::string& what, std::size_t times = 1);
  // The same, for so many renewals of a lease of that name; throws if it is lost.
  void pass_renewals(RecordingObserver& observer, const std::string& name, std::size_t times = 1);

  // Two leases of one lock, of different clients: the first ended without a release, then the second was granted.
  struct Succession {
    Lease stale;
    Lease next;
  };
  using AtGrant = std::function<void(const Lease& stale, const Lease& next)>;
  [[nodiscard]] Succession after_expiry(const AtGrant& at_grant = nullptr);
  [[nodiscard]] Succession after_kill();
  // Fails unless it holds name() until it is released here.
  void expect_untouched(Lease& lease);

  // Whether a different client could get the lock at once.
  [[nodiscard]] bool is_free(const std::string& name);
  // Waits until the service has nothing of this name that could delay others, if the fixture can detect that: a
  // clean-up may still be in progress when the call that caused it has returned. Throws Hang.
  void await_no_residue(const std::string& name);
  // Fails unless the lock can be acquired at once, and nothing of name() is left afterwards.
  void expect_nothing_left(Lock& lock) {
    EXPECT_TRUE(take(lock).release());
    await_no_residue(name());
  }
  // Waits until the service reports that many waiters, to a waiting client or to `asking`; only if it can. Throws Hang.
  void await_waiters(const std::string& name, std::uint64_t count, const Client* asking = nullptr) {
    await_waiters(kind().kind, name, count, asking);
  }
  void await_waiters(LockKind kind, const std::string& name, std::uint64_t count, const Client* asking = nullptr);
  // Another process on the same service; see worker.hpp.
  [[nodiscard]] Worker worker(const std::string& label = "worker");

 private:
  Client& probe();

  std::unique_ptr<Fixture> fixture_;
  std::list<Client> clients_;
  std::list<std::unique_ptr<Lock>> locks_;
  std::shared_ptr<ManualClock> clock_;
  std::optional<Capabilities> caps_;
  Client* probe_ = nullptr;
  std::string run_id_;
};

class Contract : public ContractBase, public ::testing::WithParamInterface<std::tuple<Subject, Kind>> {
 protected:
  [[nodiscard]] const Subject& subject() const override { return std::get<0>(GetParam()); }
  [[nodiscard]] const Kind& kind() const override { return std::get<1>(GetParam()); }
};

// For a suite of tests that are not repeated for each kind.
class SubjectContract : public ContractBase, public ::testing::WithParamInterface<Subject> {
 protected:
  [[nodiscard]] const Subject& subject() const override { return GetParam(); }
};

// The subjects that were added.
[[nodiscard]] const std::vector<Subject>& all_subjects();
[[nodiscard]] std::vector<Subject> subjects_with(LockKind kind);
// The subjects that get the tests of the client too.
[[nodiscard]] std::vector<Subject> client_subjects();

// For INSTANTIATE_TEST_SUITE_P: the names of a subject, and of a subject and a variant.
inline constexpr auto name_of_subject = [](const auto& row) { return row.param.name; };
inline constexpr auto name_of = [](const auto& row) {
  const auto& [subject, variant] = row.param;
  return subject.name + (variant.name.empty() ? "" : "_") + variant.name;
};

// Tests whose outcome depends on the client only, not on the backend: options, refused names, handlers, reentrancy.
// They run only on subjects that request them.
class ClientContract : public Contract {};

// Skips the test, as not applicable or untested, if the fixture lacks the feature.
#define DLOCK_NEEDS(feature) \
  if (const auto lacking = this->lacks(Feature::feature)) GTEST_SKIP() << *lacking

// Skips the test as not applicable unless the backend promises this.
#define DLOCK_APPLIES_IF(promise, otherwise) \
  if (!(promise)) GTEST_SKIP() << "not applicable: " << (otherwise)

// Prevents the linker from dropping a source file of tests from a static library.
#define DLOCK_CONFORMANCE_TESTS(file) \
  void link_##file() {}

}  // namespace dlock::conformance
