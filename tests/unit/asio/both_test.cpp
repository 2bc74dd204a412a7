// A source that uses both kinds of Asio.
#include <asio/use_future.hpp>
#include <future>

#include <dlock/asio.hpp>

#include "asio_test.hpp"

namespace dlock::test {
namespace {

class BothKindsOfAsioTest : public AsioTest {};

TEST_P(BothKindsOfAsioTest, TheCompletionTokenTellsWhichIsMeant) {
  Lease lease = async_acquire(lock, {}, ::asio::use_future).get();
  EXPECT_TRUE(async_release(lease, boost::asio::use_future).get());
  Lease again = async_acquire(lock, {}, boost::asio::use_future).get();
  EXPECT_TRUE(async_release(again, ::asio::use_future).get());
}

TEST_P(BothKindsOfAsioTest, APlainHandlerNamesWhichIsMeant) {
  std::promise<bool> done;
  with_asio::async_acquire(lock, {},
                           [&](std::error_code ec, const Lease& lease) { done.set_value(!ec && lease.held()); });
  EXPECT_TRUE(done.get_future().get());
  std::promise<bool> again;
  with_boost_asio::async_acquire(lock, {},
                                 [&](ErrorCode ec, const Lease& lease) { again.set_value(!ec && lease.held()); });
  EXPECT_TRUE(again.get_future().get());
}

DLOCK_ON_BOTH_BACKENDS(BothKindsOfAsioTest);

}  // namespace
}  // namespace dlock::test
