#include "core/api/lock_impl.hpp"

#include <algorithm>
#include <string_view>
#include <utility>

#include <dlock/error.hpp>

#include "core/api/outcome.hpp"
#include "core/client/acquisition.hpp"
#include "core/client/blocking.hpp"
#include "core/client/failures.hpp"
#include "core/client/lease_record.hpp"

namespace dlock::detail {

Lease LockPlace::acquire(Mode mode, const AcquireOptions& options, Failure& failure) const {
  const auto acquisition = std::make_shared<Acquisition>(core, target(mode), options, nullptr);
  failure = acquisition->run();
  return acquisition->take_lease();
}

Lease LockImpl::acquire(Mode mode, const AcquireOptions& options) const {
  return lease_or_throw([&](Failure& failure) { return acquire(mode, options, failure); });
}

Lease LockImpl::acquire(Mode mode, const AcquireOptions& options, std::error_code& ec) const {
  return lease_or_code([&](Failure& failure) { return acquire(mode, options, failure); }, ec);
}

Lease LockImpl::try_once(Mode mode, Duration wait, AcquireOptions options, Failure& failure) const {
  const std::string_view form = kind == LockKind::election ? "try_campaign"
                                : mode == Mode::shared     ? "try_acquire_shared"
                                                           : "try_acquire";
  if (auto why = problem_with_wait(wait, options, form)) {
    failure = *std::move(why);
    return {};
  }
  options.wait = wait;
  return acquire(mode, options, failure);
}

std::optional<Lease> LockImpl::try_acquire_for(Mode mode, Duration wait, AcquireOptions options) const {
  return lease_unless_busy([&](Failure& failure) { return try_once(mode, wait, std::move(options), failure); });
}

std::optional<Lease> LockImpl::try_acquire_for(Mode mode, Duration wait, AcquireOptions options,
                                               std::error_code& ec) const {
  return lease_unless_busy([&](Failure& failure) { return try_once(mode, wait, std::move(options), failure); }, ec);
}

void LockImpl::start_acquire(Mode mode, const AcquireOptions& options, Completion<Lease> handler) const {
  // Handed on, never copied: what it captured must be destroyed where it runs, not inside a task.
  (void)detail::start_acquire(
      core, target(mode), options, [core = core, handler = std::move(handler)](AcquireResult result) mutable {
        core->notifier().complete([handler = std::move(handler), result = std::move(result)] {
          handler(result.failure, result.lease ? LeaseRecord::make_lease(result.lease) : Lease());
        });
      });
}

void LockImpl::lock(Mode mode) {
  if (mine().held()) {
    throw Error(Failure{std::make_error_code(std::errc::resource_deadlock_would_occur),
                        "this thread already holds " + described(kind, name)});
  }
  auto options = defaults.get();
  options.wait = forever;
  leases_.enter([&] { return acquire(mode, options); }, mode);
}

bool LockImpl::try_lock_within(Mode mode, Duration wait) {
  if (mine().held()) return false;
  auto options = defaults.get();
  options.wait = std::max(wait, Duration());
  return leases_.try_enter([&] { return try_acquire_for(mode, options.wait, options); }, mode);
}

void LockImpl::unlock(Mode mode) noexcept {
  const auto lease = leases_.decrement(mode);  // released when it goes out of scope
}

}  // namespace dlock::detail
