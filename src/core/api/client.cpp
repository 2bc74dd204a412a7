#include <dlock/client.hpp>

#include <algorithm>
#include <chrono>
#include <limits>
#include <optional>
#include <string>
#include <utility>

#include <dlock/spi/backend.hpp>
#include <dlock/spi/backoff.hpp>

#include "core/api/lock_impl.hpp"
#include "core/api/question.hpp"
#include "core/client/client_core.hpp"
#include "util/event.hpp"
#include "util/names.hpp"

namespace dlock {

namespace {

// Why the service still remembers a name; nothing if it does not.
std::optional<Failure> why_kept(const LockInfo& info) {
  const std::string lock = std::string(to_string(info.kind)) + " " + util::quoted(info.name);
  if (info.held)
    return Failure{errc::timed_out, lock + " is held by " + (info.holder.empty() ? "an unknown client" : info.holder)};
  if (info.waiters.value_or(0) > 0) return Failure{errc::timed_out, lock + " has waiters"};
  if (info.token.value() == 0) return std::nullopt;
  return Failure{errc::timed_out, lock +
                                      " cannot be forgotten yet: it was in use within the last minute, a client is "
                                      "about to use it, or its last token, " +
                                      std::to_string(info.token.value()) + ", is ahead of the service's clock"};
}

void require_good_name(std::string_view name) {
  if (const auto problem = util::problem_with_name(name)) throw Error(errc::invalid_argument, *problem);
}

}  // namespace

Client::Client(std::shared_ptr<detail::ClientCore> core) noexcept : core_(std::move(core)) {}

Client::Client(Client&&) noexcept = default;

Client& Client::operator=(Client&& other) noexcept {
  if (this != &other) {
    Client old(std::exchange(core_, std::exchange(other.core_, nullptr)));
  }
  return *this;
}

Client::~Client() {
  if (core_) core_->close();
}

DistributedLock Client::make_lock(std::string name) const& {
  require_good_name(name);
  return DistributedLock(std::make_unique<detail::LockImpl>(detail::LockPlace{core_, std::move(name)}));
}

ReadWriteLock Client::make_read_write_lock(std::string name) const& {
  require_good_name(name);
  require(LockKind::read_write);
  return ReadWriteLock(
      std::make_unique<detail::LockImpl>(detail::LockPlace{core_, std::move(name), LockKind::read_write}));
}

Semaphore Client::make_semaphore(std::string name, std::int64_t permits) const& {
  require_good_name(name);
  require(LockKind::semaphore);
  if (permits < 1 || permits > std::numeric_limits<std::int32_t>::max()) {
    throw Error(errc::invalid_argument,
                "permits: " + std::to_string(permits) + " is not a number from 1 to 2147483647");
  }
  return Semaphore(std::make_unique<detail::LockImpl>(
      detail::LockPlace{core_, std::move(name), LockKind::semaphore, static_cast<std::uint32_t>(permits)}));
}

Election Client::make_election(std::string name) const& {
  require_good_name(name);
  require(LockKind::election);
  return Election(std::make_unique<detail::ElectionImpl>(detail::ElectionImpl{core_, std::move(name)}));
}

void Client::require(LockKind kind) const {
  const Capabilities& can = core_->context().capabilities;
  if (can.has(kind)) return;
  std::string what = "backend \"" + std::string(can.backend) + "\"";
  if (!can.strategy.empty()) what += " with strategy \"" + std::string(can.strategy) + "\"";
  throw Error(errc::unsupported, what + " has no " + std::string(to_string(kind)) + "s");
}

MultiLock Client::make_multi_lock(std::vector<std::string> names) const& {
  std::vector<DistributedLock> locks;
  locks.reserve(names.size());
  for (std::string& name : names) locks.push_back(make_lock(std::move(name)));
  return MultiLock(std::move(locks));
}

Capabilities Client::capabilities() const noexcept {
  return core_->context().capabilities;
}

Stats Client::stats() const noexcept {
  return core_->stats();
}

const std::string& Client::url() const noexcept {
  return core_->context().redacted_url;
}

const std::string& Client::holder() const noexcept {
  return core_->context().holder;
}

void Client::ping(Duration wait, std::string_view name) const {
  using RealTime = std::chrono::steady_clock;  // waits for answers are in real time
  require_good_name(name);
  if (wait < Duration()) throw Error(errc::invalid_argument, "wait: negative or not a number");
  const auto end =
      saturating_add(std::chrono::time_point_cast<std::chrono::nanoseconds>(RealTime::now()), wait.value());
  const auto left = [end] { return std::max<std::chrono::nanoseconds>(end - RealTime::now(), {}); };
  Failure reason;
  Backoff backoff{std::chrono::milliseconds(500)};
  while (true) {
    const auto answer = detail::ask<bool>(
        core_, [name = std::string(name)](Backend& backend, auto done) { backend.ping(name, std::move(done)); },
        std::min(left(), detail::response_limit(core_->context())));
    if (answer.ok()) return;
    // A timeout that is due to the end of the wait says less than an earlier failure.
    if (!reason.code || left() > std::chrono::nanoseconds::zero()) reason = answer.failure();
    if (answer.failure().code != errc::unavailable) throw Error(answer.failure());
    const auto pause = backoff.next(core_->engine());
    if (pause >= left()) throw Error(reason);
    util::Event never;
    (void)core_->engine().wait(never, pause);
  }
}

LockInfo Client::inspect(std::string_view name, LockKind kind) const {
  require_good_name(name);
  require(kind);
  return detail::ask_or_throw<LockInfo>(core_, &Backend::inspect, kind, std::string(name));
}

std::vector<LockInfo> Client::list(LockKind kind) const {
  require(kind);
  auto locks = detail::ask_or_throw<std::vector<LockInfo>>(core_, &Backend::list, kind);
  std::ranges::sort(locks, {}, &LockInfo::name);
  return locks;
}

bool Client::break_lock(std::string_view name, LockKind kind) const {
  require_good_name(name);
  require(kind);
  return detail::ask_or_throw<bool>(core_, &Backend::break_lock, kind, std::string(name));
}

bool Client::forget(std::string_view name, LockKind kind) const {
  require_good_name(name);
  require(kind);
  const Forgetting what{.name = std::string(name), .idle = least_idle, .kind = kind};
  const auto removed = detail::ask_or_throw<std::vector<std::string>>(core_, &Backend::forget, what);
  if (!removed.empty()) return true;
  if (!capabilities().can_inspect) return false;
  if (const auto reason = why_kept(inspect(name, kind))) throw Error(*reason);
  return false;
}

std::vector<std::string> Client::forget_idle(Duration idle, LockKind kind) const {
  require(kind);
  const Forgetting what{.name = {}, .idle = idle.value(), .kind = kind};
  if (what.idle < least_idle) {
    throw Error(errc::invalid_argument, "idle: must be at least one minute");
  }
  auto removed = detail::ask_or_throw<std::vector<std::string>>(core_, &Backend::forget, what);
  std::ranges::sort(removed);
  return removed;
}

std::vector<Finding> Client::diagnose() const {
  auto result =
      detail::ask<std::vector<Finding>>(core_, [](Backend& backend, auto done) { backend.diagnose(std::move(done)); });
  if (result.ok()) return std::move(result.value());
  const auto& code = result.failure().code;
  if (code == errc::closed || code == std::errc::resource_deadlock_would_occur) throw Error(result.failure());
  return {{Finding::Severity::error, "service", Error(result.failure()).what()}};
}

std::vector<std::string> Client::initialize() const {
  return detail::ask_or_throw<std::vector<std::string>>(core_, &Backend::initialize);
}

}  // namespace dlock
