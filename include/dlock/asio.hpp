// Asynchronous acquires, campaigns and releases for programs that use standalone Asio 1.22 or later. For Boost.Asio
// there is <dlock/boost_asio.hpp>. <dlock/dlock.hpp> does not include this header.
//
//   asio::awaitable<void> pay(dlock::DistributedLock& lock) {
//     dlock::Lease lease = co_await dlock::async_acquire(lock, {.wait = 5s}, asio::use_awaitable);
//     co_await transfer(lease.token());
//     if (!co_await dlock::async_release(lease, asio::use_awaitable)) roll_back();  // the lock was lost
//   }
//
// Completion tokens: all of Asio's, and plain handlers. An operation completes with void(std::error_code, Lease),
// a MultiLock's with void(std::error_code, MultiLease), a release with void(std::error_code, bool was_ours). The codes
// are those of the functions of the same name in lock.hpp and lease.hpp. So co_await throws std::system_error, whose
// code is a dlock::errc.
//
//   property of the handler   | effect
//   --------------------------+------------------------------------------------------------------------------------
//   associated executor       | runs the handler, never inside the call that starts the operation, nor on the engine
//                             | thread. Default: asio::system_executor, a thread of Asio's own pool. Until then the
//                             | operation counts as outstanding work, so that io_context::run() does not return
//   associated allocator      | of the memory of the operation, which is freed right before the handler is called
//   associated cancellation   | a cancellation of any type ends the wait with errc::cancelled; nothing is held then.
//   slot                      | If the lock was granted already, the operation succeeds. A release ignores it
//
// The operators && and || and timers work as with Asio's own operations. If `||` discards a lease, because the timer
// expired at that moment, the lease's destructor releases it.
//
// Options in braces or in a variable of type AcquireOptions (CampaignOptions) are safe in co_await expressions. Other
// temporary aggregates are not: GCC 12 destroys their members twice. So AcquireOptions{...} as an argument does not
// compile.
//
// Call the functions from any thread; they do not block. A lock or lease in a variable must exist until the operation
// starts, which is at the call for most tokens, and at co_await for asio::use_awaitable and asio::deferred. A temporary
// one is moved into the operation. The client must exist until the operation completes; its end completes it with
// errc::closed. If the handler's execution context (io_context) is destroyed first, it destroys the handler without
// calling it, and dlock cancels the acquire or releases the lease.
//
// ~Lease blocks the event loop until the service has answered, at most ClientOptions::close_timeout. Use
// async_release() or Lease::release_in_background(), and for coroutines that are cancelled, close_timeout = 0.
#pragma once

#include <asio/associated_allocator.hpp>
#include <asio/associated_cancellation_slot.hpp>
#include <asio/associated_executor.hpp>
#include <asio/async_result.hpp>
#include <asio/execution.hpp>
#include <asio/execution_context.hpp>
#include <asio/executor_work_guard.hpp>
#include <asio/post.hpp>
#include <asio/system_executor.hpp>
#include <asio/version.hpp>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <system_error>
#include <type_traits>
#include <utility>

#include <dlock/detail/asio_support.hpp>
#include <dlock/election.hpp>
#include <dlock/lease.hpp>
#include <dlock/multi_lock.hpp>
#include <dlock/options.hpp>
#include <dlock/read_write_lock.hpp>

#if ASIO_VERSION < 102200
#error "<dlock/asio.hpp> needs Asio 1.22 or later"
#endif

#define DLOCK_ASIO with_asio
namespace dlock {
inline namespace DLOCK_ASIO {
namespace operations {
namespace net = ::asio;
using ErrorCode = std::error_code;
}  // namespace operations
}  // namespace DLOCK_ASIO
}  // namespace dlock
#include <dlock/detail/asio.ipp>
#undef DLOCK_ASIO
