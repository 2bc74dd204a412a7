#include <dlock/lock.hpp>

#include <utility>

#include <dlock/error.hpp>

#include "core/client/lock_impl.hpp"
#include "core/shard/blocking.hpp"

namespace dlock {

namespace detail {

Lease LockImpl::acquire(const AcquireOptions& options, Failure& failure) const {
  const auto acquisition = std::make_shared<Acquisition>(shard, name, options, nullptr);
  acquisition->begin(shard->if_busy());
  if (!acquisition->ended().is_set()) {
    if (shard->engine().must_not_block()) {
      acquisition->cancel();
      failure = would_deadlock();
      return {};
    }
    shard->engine().wait(acquisition->ended());
  }
  failure = acquisition->take_failure();
  return acquisition->take_lease();
}

}  // namespace detail

DistributedLock::DistributedLock(std::unique_ptr<detail::LockImpl> impl) noexcept : impl_(std::move(impl)) {}
DistributedLock::DistributedLock(DistributedLock&&) noexcept = default;
DistributedLock& DistributedLock::operator=(DistributedLock&&) noexcept = default;
DistributedLock::~DistributedLock() = default;

const std::string& DistributedLock::name() const noexcept {
  return impl_->name;
}

Lease DistributedLock::acquire(const AcquireOptions& options) {
  Failure failure;
  Lease lease = impl_->acquire(options, failure);
  if (failure.code) throw Error(failure);
  return lease;
}

Lease DistributedLock::acquire(const AcquireOptions& options, std::error_code& ec) {
  Failure failure;
  Lease lease = impl_->acquire(options, failure);
  ec = failure.code;
  return lease;
}

std::optional<Lease> DistributedLock::try_acquire(AcquireOptions options) {
  return try_acquire_for(Duration(), std::move(options));
}

std::optional<Lease> DistributedLock::try_acquire(AcquireOptions options, std::error_code& ec) {
  return try_acquire_for(Duration(), std::move(options), ec);
}

std::optional<Lease> DistributedLock::try_acquire_for(Duration wait, AcquireOptions options) {
  options.wait = wait;
  Failure failure;
  Lease lease = impl_->acquire(options, failure);
  if (!failure.code) return lease;
  if (failure.code == errc::timed_out) return std::nullopt;
  throw Error(failure);
}

std::optional<Lease> DistributedLock::try_acquire_for(Duration wait, AcquireOptions options, std::error_code& ec) {
  options.wait = wait;
  Failure failure;
  Lease lease = impl_->acquire(options, failure);
  ec = failure.code == errc::timed_out ? std::error_code() : failure.code;
  if (failure.code) return std::nullopt;
  return lease;
}

void DistributedLock::start_acquire(const AcquireOptions& options, detail::Completion<Lease> handler) {
  // Handed on, never copied: what it captured must be destroyed where it runs, not inside a task.
  const auto acquisition = std::make_shared<detail::Acquisition>(
      impl_->shard, impl_->name, options,
      [shard = impl_->shard, handler = std::move(handler)](detail::AcquireResult result) mutable {
        shard->notifier().complete([handler = std::move(handler), result = std::move(result)] {
          handler(result.failure, result.lease ? detail::LeaseState::make_lease(result.lease) : Lease());
        });
      });
  acquisition->begin(engine::IfBusy::leave_task);
}

void DistributedLock::lock() & {
  auto options = impl_->defaults();
  options.wait = forever;
  if (impl_->leases.mine().held()) {
    throw Error(Failure{std::make_error_code(std::errc::resource_deadlock_would_occur),
                        "this thread holds lock \"" + impl_->name + "\" already"});
  }
  (void)impl_->leases.decrement();  // a lost lease that this thread did not unlock
  detail::LivelockBackoff::of_this_thread().pause(&impl_->leases);
  impl_->leases.put(acquire(options));
}

bool DistributedLock::try_lock() & {
  return try_lock_within(Duration());
}

bool DistributedLock::try_lock_within(Duration wait) {
  if (impl_->leases.mine().held()) return false;
  (void)impl_->leases.decrement();
  auto lease = try_acquire_for(std::max(wait, Duration()), impl_->defaults());
  if (!lease) {
    detail::LivelockBackoff::of_this_thread().tried_in_vain(&impl_->leases, std::chrono::steady_clock::now());
    return false;
  }
  impl_->leases.put(*std::move(lease));
  return true;
}

void DistributedLock::unlock() noexcept {
  const auto lease = impl_->leases.decrement();  // released when it goes out of scope
}

const Lease& DistributedLock::lease() const& noexcept {
  return impl_->leases.mine();
}

void DistributedLock::set_defaults(const AcquireOptions& options) & {
  impl_->set_defaults(options);
}

AcquireOptions DistributedLock::defaults() const {
  return impl_->defaults();
}

}  // namespace dlock
