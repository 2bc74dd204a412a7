#include "core/api/lock_impl.hpp"

#include <algorithm>
#include <string_view>
#include <utility>

#include <dlock/error.hpp>

#include "core/client/acquisition.hpp"
#include "core/client/failures.hpp"
#include "core/client/lease_record.hpp"

namespace dlock::detail {

Outcome<Lease> LockImpl::acquire(Mode mode, const AcquireOptions& options) const {
  const auto acquisition = std::make_shared<Acquisition>(core, target(mode), options, nullptr);
  Failure failure = acquisition->run();
  return {.lease = acquisition->take_lease(), .failure = std::move(failure)};
}

Outcome<Lease> LockImpl::try_acquire(Mode mode, Duration wait, AcquireOptions options) const {
  const std::string_view form = kind == LockKind::election ? "try_campaign"
                                : mode == Mode::shared     ? "try_acquire_shared"
                                                           : "try_acquire";
  if (auto why = problem_with_wait(wait, options, form)) return {.failure = *std::move(why)};
  options.wait = wait;
  return acquire(mode, options);
}

void LockImpl::start_acquire(Mode mode, const AcquireOptions& options, Completion<Lease> handler) const {
  // Moved, never copied: the captures of the handler must be destroyed where it runs, not inside a task.
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
  leases_.enter([&] { return acquire(mode, options).or_throw(); }, mode);
}

bool LockImpl::try_lock_within(Mode mode, Duration wait) {
  if (mine().held()) return false;
  auto options = defaults.get();
  options.wait = std::max(wait, Duration());
  return leases_.try_enter([&] { return acquire(mode, options).unless_busy(); }, mode);
}

void LockImpl::unlock(Mode mode) noexcept {
  const auto lease = leases_.decrement(mode);  // released when it goes out of scope
}

}  // namespace dlock::detail
