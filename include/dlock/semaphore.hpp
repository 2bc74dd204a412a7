// Semaphore: a name that a limited number of owners may hold at the same time. A permit is a Lease: it has an owner,
// dlock renews it, and it becomes free when its holder dies.
//
//   dlock::Semaphore uploads = client.make_semaphore("uploads", 8);  // nothing is sent yet
//   dlock::Lease permit = uploads.acquire();                         // waits while all 8 are taken
//
//   permits taken      | acquire()                         | release() of a permit
//   -------------------+-----------------------------------+----------------------------
//   fewer than n       | enters, unless others wait before | one is free again
//   n                  | waits                             | the first who waits enters
//
// All programs that use a name at the same time must give the same number. While the semaphore is held or has waiters,
// an acquire with another number fails with invalid_argument, which names both numbers. Otherwise any number is
// accepted. An acquire takes one permit. A permit's token distinguishes it from others of that name, but does not
// fence, because several are valid at once. What lock.hpp says about threads, handlers and moved-from locks, and about
// functions of the same name, also applies here.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <system_error>
#include <utility>

#include <dlock/detail/completion.hpp>
#include <dlock/detail/with_lock.hpp>
#include <dlock/duration.hpp>
#include <dlock/lease.hpp>
#include <dlock/options.hpp>

namespace dlock {

namespace detail {
class LockImpl;
}

class Semaphore {
 public:
  Semaphore(Semaphore&&) noexcept;
  Semaphore& operator=(Semaphore&&) noexcept;
  ~Semaphore();

  [[nodiscard]] const std::string& name() const noexcept;
  // The number of permits.
  [[nodiscard]] std::uint32_t permits() const noexcept;

  // As in DistributedLock. A lease is one permit.
  Lease acquire(const AcquireOptions& options = {});
  Lease acquire(const AcquireOptions& options, std::error_code& ec);
  [[nodiscard]] std::optional<Lease> try_acquire(AcquireOptions options = {});
  [[nodiscard]] std::optional<Lease> try_acquire(AcquireOptions options, std::error_code& ec);
  [[nodiscard]] std::optional<Lease> try_acquire_for(Duration wait, AcquireOptions options = {});
  [[nodiscard]] std::optional<Lease> try_acquire_for(Duration wait, AcquireOptions options, std::error_code& ec);
  template <class Handler>
  void async_acquire(const AcquireOptions& options, Handler&& handler) {
    start_acquire(options, detail::completion<Lease>(std::forward<Handler>(handler)));
  }

 private:
  friend class Client;
  explicit Semaphore(std::unique_ptr<detail::LockImpl> impl) noexcept;
  void start_acquire(const AcquireOptions& options, detail::Completion<Lease> handler);

  std::unique_ptr<detail::LockImpl> impl_;
};

}  // namespace dlock
