#include <dlock/semaphore.hpp>

#include <utility>

#include "core/api/lock_impl.hpp"

namespace dlock {

Semaphore::Semaphore(std::unique_ptr<detail::LockImpl> impl) noexcept : impl_(std::move(impl)) {}
Semaphore::Semaphore(Semaphore&&) noexcept = default;
Semaphore& Semaphore::operator=(Semaphore&&) noexcept = default;
Semaphore::~Semaphore() = default;

const std::string& Semaphore::name() const noexcept {
  return impl_->name;
}

std::uint32_t Semaphore::permits() const noexcept {
  return impl_->permits;
}

Lease Semaphore::acquire(const AcquireOptions& options) {
  return impl_->acquire(Mode::exclusive, options).or_throw();
}

Lease Semaphore::acquire(const AcquireOptions& options, std::error_code& ec) {
  return impl_->acquire(Mode::exclusive, options).or_code(ec);
}

std::optional<Lease> Semaphore::try_acquire(AcquireOptions options) {
  return try_acquire_for(Duration(), std::move(options));
}

std::optional<Lease> Semaphore::try_acquire(AcquireOptions options, std::error_code& ec) {
  return try_acquire_for(Duration(), std::move(options), ec);
}

std::optional<Lease> Semaphore::try_acquire_for(Duration wait, AcquireOptions options) {
  return impl_->try_acquire(Mode::exclusive, wait, std::move(options)).unless_busy();
}

std::optional<Lease> Semaphore::try_acquire_for(Duration wait, AcquireOptions options, std::error_code& ec) {
  return impl_->try_acquire(Mode::exclusive, wait, std::move(options)).unless_busy(ec);
}

void Semaphore::start_acquire(const AcquireOptions& options, detail::Completion<Lease> handler) {
  impl_->start_acquire(Mode::exclusive, options, std::move(handler));
}

}  // namespace dlock
