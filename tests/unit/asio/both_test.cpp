// A source that uses both kinds of Asio.
#include <asio/use_future.hpp>
#include <future>

#include <dlock/asio.hpp>

#include "asio_test.hpp"

namespace dlock::test {
namespace {

class BothKindsOfAsioTest : public AsioTest {};

TEST_P(BothKindsOfAsioTest, Source_NamesTheAsioThatItMeans) {
  Lease lease = with_asio::async_acquire(lock, {}, ::asio::use_future).get();
  EXPECT_TRUE(with_boost_asio::async_release(lease, boost::asio::use_future).get());
  Lease again = with_boost_asio::async_acquire(lock, {}, boost::asio::use_future).get();
  EXPECT_TRUE(with_asio::async_release(again, ::asio::use_future).get());
}

DLOCK_ON_BOTH_BACKENDS(BothKindsOfAsioTest);

}  // namespace
}  // namespace dlock::test
