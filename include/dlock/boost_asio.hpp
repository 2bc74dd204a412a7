// <dlock/asio.hpp> for programs that use Boost.Asio of Boost 1.81 or later, with the same functions. Operations
// complete with void(boost::system::error_code, Lease), and so on. The error code compares equal to a dlock::errc:
//
//   boost::system::error_code ec;
//   dlock::Lease lease = co_await dlock::async_acquire(lock, {.wait = 5s}, redirect_error(use_awaitable, ec));
//   if (ec == dlock::errc::timed_out) co_return;
//
// A source that includes both headers names which functions it means: dlock::with_asio::async_acquire() or
// dlock::with_boost_asio::async_acquire().
#pragma once

#include <boost/asio/associated_allocator.hpp>
#include <boost/asio/associated_cancellation_slot.hpp>
#include <boost/asio/associated_executor.hpp>
#include <boost/asio/async_result.hpp>
#include <boost/asio/execution.hpp>
#include <boost/asio/execution_context.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/system_executor.hpp>
#include <boost/system/error_code.hpp>
#include <boost/version.hpp>
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

#if BOOST_VERSION < 108100
#error "<dlock/boost_asio.hpp> needs Boost 1.81 or later"
#endif

#define DLOCK_ASIO with_boost_asio
namespace dlock {
inline namespace DLOCK_ASIO {
namespace operations {
namespace net = ::boost::asio;
using ErrorCode = boost::system::error_code;
}  // namespace operations
}  // namespace DLOCK_ASIO
}  // namespace dlock
#include <dlock/detail/asio.ipp>
#undef DLOCK_ASIO
