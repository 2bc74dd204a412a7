#include "bench/scenarios/relay.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

namespace dlock::bench {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr Clock::time_point start{seconds(100)};

TEST(Relay, AHandOffLastsFromTheReleaseToTheNextHolder) {
  Relay relay(2);
  EXPECT_EQ(relay.take(0, start), std::nullopt) << "there was no release";
  (void)relay.let_go(start + milliseconds(10));
  EXPECT_EQ(relay.take(1, start + milliseconds(13)), milliseconds(3));
}

TEST(Relay, AReleasingContenderWaitsForASuccessorOrAStop) {
  Relay relay(2);
  (void)relay.take(0, start);
  const std::uint64_t turn = relay.let_go(start);
  std::atomic<bool> went_on = false;
  std::jthread releaser([&] {
    relay.await_successor(turn, {});
    went_on = true;
  });
  EXPECT_FALSE(went_on);
  (void)relay.take(1, start);
  releaser.join();
  EXPECT_TRUE(went_on);
  relay.await_successor(turn, {});  // returns at once: there has been a successor
  std::stop_source stop;
  stop.request_stop();
  relay.await_successor(relay.let_go(start), stop.get_token());
}

TEST(Relay, TheLongestWaitIsOneThatEndedOrGoesOn) {
  Relay relay(3);
  for (const std::size_t contender : {0U, 1U, 2U}) relay.ask(contender, start);
  (void)relay.take(0, start + milliseconds(1));
  (void)relay.take(1, start + milliseconds(7));
  EXPECT_EQ(relay.take_longest_wait(start + milliseconds(5)), milliseconds(7));
  EXPECT_EQ(relay.take_longest_wait(start + milliseconds(50)), milliseconds(50)) << "it goes on";
  (void)relay.take(2, start + milliseconds(60));
  EXPECT_EQ(relay.take_longest_wait(start + seconds(9)), milliseconds(60));
  EXPECT_EQ(relay.take_longest_wait(start + seconds(9)), milliseconds(0)) << "each counts once";
}

}  // namespace
}  // namespace dlock::bench
