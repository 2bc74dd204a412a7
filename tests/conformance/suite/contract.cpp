#include "suite/contract.hpp"

#include <algorithm>
#include <array>
#include <cstdio>
#include <ostream>
#include <random>
#include <stdexcept>
#include <utility>

namespace dlock::conformance {

namespace {

// How finely time is stepped, and how far at most before something counts as a hang.
constexpr int steps_per_lease = 24;
constexpr int leases_until_hang = 20;

// Less than the time-outs that a client has unless it is told others, so that one that does not keep its own is later.
constexpr int leases_of_slack = 5;

// Between two attempts of a client to reach a service that is back.
constexpr auto longest_reconnect_pause = std::chrono::seconds(2);

constexpr auto unreached_timeout = std::chrono::milliseconds(100);
constexpr auto patient_timeout = std::chrono::seconds(10);

std::string random_id() {
  std::random_device device;
  std::array<char, 17> text{};
  std::snprintf(text.data(), text.size(), "%08x%08x", device(), device());
  return text.data();
}

// Two turns: a handler that runs in the first may leave work that the second waits for.
constexpr int turns_to_settle = 2;

void engine_turn(Client& client) {
  std::stop_source cancelled;
  cancelled.request_stop();
  DistributedLock nothing = client.make_lock("dlock-conformance/engine-turn");
  const auto turned = std::make_shared<Event>();
  nothing.async_acquire({.cancel = cancelled.get_token()},
                        [turned](std::error_code /*ec*/, const Lease& /*lease*/) { turned->set(); });
  turned->wait("the handler of a cancelled acquire does not run");
}

}  // namespace

void PrintTo(const Subject& subject, std::ostream* out) {
  *out << subject.name;
}
void PrintTo(const Kind& kind, std::ostream* out) {
  *out << (kind.name.empty() ? "lock" : kind.name);
}

void ContractBase::SetUp() {
  fixture_ = subject().make();
  run_id_ = random_id();
}

void ContractBase::TearDown() {
  locks_.clear();
  clients_.clear();
  fixture_.reset();
}

const Capabilities& ContractBase::caps() {
  if (!caps_) {
    ClientOptions options;
    options.clock = clock_;  // a service without a clock of its own reads that of its clients
    caps_ = fixture_->make_client(std::move(options), Link::steady).capabilities();
  }
  return *caps_;
}

std::optional<std::string> ContractBase::lacks(Feature feature) const {
  const auto missing = fixture_->missing(feature);
  if (!missing) return std::nullopt;
  return (missing->kind == Missing::Kind::untested ? "untested: " : "not applicable: ") + missing->why;
}

Client& ContractBase::client(ClientOptions options, Link link) {
  if (clock_ && !options.clock) options.clock = clock_;
  // A client that cannot reach the service, or whose clean-up waits for a clock that stands still, is not waited for.
  if (link == Link::disturbed) options.close_timeout = std::min(options.close_timeout, Duration(unreached_timeout));
  // How soon a service that works answers on a busy machine is no question of the contract.
  if (link == Link::steady) options.response_timeout = std::max(options.response_timeout, Duration(patient_timeout));
  return clients_.emplace_back(fixture_->make_client(std::move(options), link));
}

void ContractBase::close(Client& client) {
  clients_.remove_if([&](const Client& candidate) { return &candidate == &client; });
}

Lock& ContractBase::lock_of(const Kind& kind, const Client& client, const std::string& name) {
  return *locks_.emplace_back(kind.make(client, name));
}

std::pair<Lock&, Lock&> ContractBase::two_locks() {
  Lock& one = lock_of(client());
  return {one, lock_of(client())};
}

std::string ContractBase::name(std::string_view tail) const {
  std::string test = ::testing::UnitTest::GetInstance()->current_test_info()->name();
  test.resize(std::min(test.find('/'), test.size()));
  std::string result = "dlock-conformance/" + test + "/" + run_id_;
  if (!tail.empty()) result.append("/").append(tail);
  return result;
}

void ContractBase::step_time_if_possible() {
  if (!lacks(Feature::step_clock)) clock_ = fixture_->clock();
}

TimePoint ContractBase::now() const {
  return clock_ ? clock_->now() : LeaseClock::now();
}

std::chrono::nanoseconds ContractBase::lease() {
  const std::chrono::nanoseconds wanted = stepping() ? std::chrono::seconds(30) : short_lease();
  return std::clamp(wanted, caps().min_lease, caps().max_lease);
}

std::chrono::nanoseconds ContractBase::long_lease() {
  return std::clamp(std::max<std::chrono::nanoseconds>(lease(), std::chrono::seconds(3)), caps().min_lease,
                    caps().max_lease);
}

std::chrono::nanoseconds ContractBase::kept_for(const Client& of, std::chrono::nanoseconds asked) const {
  const Capabilities its = of.capabilities();
  switch (its.lease_kind) {
    case LeaseKind::per_lock:
      return asked;
    case LeaseKind::session:
      return its.max_lease;
    case LeaseKind::process:
      break;
  }
  return std::chrono::nanoseconds(0);
}

std::chrono::nanoseconds ContractBase::slack(std::chrono::nanoseconds limit) {
  return stepping() ? lease() / 4 : std::max<std::chrono::nanoseconds>(leases_of_slack * lease(), limit / 2);
}

void ContractBase::expect_within(std::chrono::nanoseconds limit, TimePoint start, std::string_view what) {
  const auto took = std::chrono::duration_cast<std::chrono::milliseconds>(now() - start);
  const auto most = std::chrono::duration_cast<std::chrono::milliseconds>(limit + slack(limit));
  EXPECT_LE(took.count(), most.count()) << what << " (milliseconds)";
}

void ContractBase::expect_wait_to_end(const std::function<void()>& disturb) {
  step_time_if_possible();
  Lock& lock = lock_of(client(impatient(), Link::disturbed));
  disturb();
  const TimePoint start = now();
  Pending waiting(lock, {.wait = several_attempts});
  pass_until(waiting.event(), "a wait for a service that is out of reach does not end");
  const auto error = waiting.get().error;
  EXPECT_TRUE(error == errc::unavailable || error == errc::ambiguous) << error.message();
  EXPECT_GE(now() - start, several_attempts);
  expect_within(several_attempts + impatience, start, "a wait for a service that is out of reach");
}

void ContractBase::expect_bounded_while_stalled(std::string_view what, const std::function<void()>& call) {
  fixture_->stall();
  const TimePoint start = now();
  call();
  expect_within(impatience, start, what);
  fixture_->resume();
  EXPECT_TRUE(take(lock_of(client())).held()) << "a release is to be repeated until it has arrived";
}

AcquireOptions ContractBase::fixed() {
  return {.lease = lease(), .renew = false};
}
AcquireOptions ContractBase::renewed() {
  return {.lease = lease()};
}

void ContractBase::step(std::chrono::nanoseconds by) {
  clock_->advance(by);
  settle();
}

void ContractBase::settle() {
  for (Client& client : clients_) {
    for (int turn = 0; turn < turns_to_settle; ++turn) engine_turn(client);
  }
}

void ContractBase::pass_until(const Event& event, const std::string& what, std::size_t times) {
  if (stepping()) {
    const auto by = lease() / steps_per_lease;
    for (int i = 0; i < steps_per_lease * leases_until_hang && !event.happened(times); ++i) step(by);
  }
  event.wait(what, times);
}

void ContractBase::pass_renewals(RecordingObserver& observer, const std::string& name, std::size_t times) {
  for (std::size_t i = 1; i <= times; ++i) {
    pass_until(observer.news(name), "a lease is not renewed", i);
    if (observer.losses(name).happened()) throw std::runtime_error("a lease is lost, and not renewed");
  }
}

Client& ContractBase::probe() {
  if (probe_ == nullptr) probe_ = &client();
  return *probe_;
}

bool ContractBase::is_free(const std::string& name) {
  return lock_of(probe(), name).try_acquire().has_value();
}

ContractBase::Succession ContractBase::after_expiry(const AtGrant& at_grant) {
  step_time_if_possible();
  auto [stale_lock, next_lock] = two_locks();
  Lease stale = take(stale_lock, fixed());
  Pending entering(next_lock, {}, [&](Lease& next) {
    if (at_grant) at_grant(stale, next);
  });
  pass_until(entering.event(), "nobody enters after a lease has run out");
  return {std::move(stale), entering.lease()};
}

ContractBase::Succession ContractBase::after_kill() {
  auto [stale_lock, next_lock] = two_locks();
  Lease stale = take(stale_lock);
  kill_hold(name());
  return {std::move(stale), take(next_lock)};
}

void ContractBase::expect_untouched(Lease& lease) {
  EXPECT_TRUE(lease.held());
  EXPECT_FALSE(is_free(name()));
  EXPECT_TRUE(lease.release());
}

void ContractBase::await_no_residue(const std::string& name) {
  if (lacks(Feature::residue)) return;
  if (fixture_->residue(kind().kind, name) == 0) return;
  // Remains that could not be cleaned up end with their lease or session, or once the connection is back.
  std::chrono::nanoseconds gone{};
  for (const Client& each : clients_) gone = std::max(gone, kept_for(each, lease()));
  gone += longest_reconnect_pause;
  const std::chrono::nanoseconds patience = stepping() ? guard() : gone + slack(gone);
  const auto give_up = std::chrono::steady_clock::now() + std::min<std::chrono::nanoseconds>(guard(), patience);
  while (fixture_->residue(kind().kind, name) != 0) {
    if (std::chrono::steady_clock::now() > give_up) throw Hang("something is left behind of \"" + name + "\"");
    settle();
  }
}

void ContractBase::await_waiters(LockKind kind, const std::string& name, std::uint64_t count, const Client* asking) {
  // Not the guard: a service that answers takes no longer, and one that cannot have so many waiters never will.
  const auto give_up = std::chrono::steady_clock::now() + std::min<std::chrono::nanoseconds>(guard(), patient_timeout);
  for (;;) {
    const std::uint64_t waiters = (asking == nullptr ? probe() : *asking).inspect(name, kind).waiters.value_or(0);
    if (waiters == count) return;
    if (std::chrono::steady_clock::now() > give_up) {
      throw Hang("the service counts " + std::to_string(waiters) + " waiters of \"" + name + "\", not " +
                 std::to_string(count));
    }
    settle();
  }
}

Worker ContractBase::worker(const std::string& label) {
  return Worker(fixture_->url(), label, kind());
}

}  // namespace dlock::conformance
