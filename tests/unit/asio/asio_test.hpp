// The fixture of the tests of <dlock/asio.hpp>, which are compiled for <dlock/boost_asio.hpp>, too.
#pragma once

#include <gtest/gtest.h>

#if DLOCK_TEST_BOOST_ASIO
#include <boost/asio.hpp>
#include <boost/asio/deferred.hpp>
#include <boost/system/system_error.hpp>

#include <dlock/boost_asio.hpp>
#else
#include <asio.hpp>
#include <asio/experimental/deferred.hpp>

#include <dlock/asio.hpp>
#endif

#include <chrono>
#include <exception>
#include <memory>
#include <string>
#include <system_error>
#include <thread>
#include <utility>

#include <dlock/dlock.hpp>

#include "torture/rig/scratch_directory.hpp"

namespace dlock::test {

using namespace std::chrono_literals;

#if DLOCK_TEST_BOOST_ASIO
namespace net = ::boost::asio;
using ErrorCode = boost::system::error_code;
using SystemError = boost::system::system_error;
using boost::asio::deferred;
#else
namespace net = ::asio;
using ErrorCode = std::error_code;
using SystemError = std::system_error;
using asio::experimental::deferred;
#endif

inline const auto rethrow = [](std::exception_ptr problem) {
  if (problem) std::rethrow_exception(problem);
};

// On both backends, and on an io_context that the test runs itself.
class AsioTest : public ::testing::TestWithParam<std::string> {
 protected:
  // Until it is so; the caller's test has a time limit.
  template <class Condition>
  static void await(Condition condition) {
    while (!condition()) std::this_thread::yield();
  }
  // Runs it to its end on the io_context.
  template <class Coroutine>
  void run(Coroutine coroutine) {
    net::co_spawn(io, std::move(coroutine), rethrow);
    io.run();
    io.restart();
  }
  // Waits until no client holds the lock or waits for it.
  void expect_free(const std::string& name) {
    await([this] { return client.stats().waiting == 0; });
    await([&] { return other.make_lock(name).try_acquire().has_value(); });
  }

  rig::ScratchDirectory directory;
  std::string url = GetParam() == "file" ? "file://" + directory.path() : "memory://asio-test";
  Client client = connect(url);
  Client other = connect(url);
  DistributedLock lock = client.make_lock("a");
  DistributedLock others = other.make_lock("a");
  net::io_context io{1};
};

#define DLOCK_ON_BOTH_BACKENDS(suite)                                      \
  INSTANTIATE_TEST_SUITE_P(On, suite, ::testing::Values("memory", "file"), \
                           [](const auto& subject) { return std::string(subject.param); })

}  // namespace dlock::test
