// Who waits for a read-write lock or a semaphore: what each is told, and who is let in with whom.
#include "redis/sharing_fixture.hpp"

namespace dlock::test {

namespace {

TEST_F(SharingTest, WhoFindsItsTurnLetsInNoMoreThanFit) {
  (void)take("a:1", 2);
  (void)take("b:1", 2, {.lease_ms = 1'000});
  (void)take("c:1", 2, {.mode = "blind"});
  (void)take("d:1", 2, {.mode = "blind"});
  let_pass("b:1", 1'000);
  EXPECT_GT(token_in(take("c:1", 2, {.mode = "blind"})), 0U);
  EXPECT_EQ(inside(), (Inside{"a:1", "c:1"}));
  EXPECT_EQ(waiters(), 1);
}

TEST_F(SharingTest, AWriterWhoFindsItsTurnIsAlone) {
  (void)read("a:1", {.lease_ms = 1'000});
  (void)write("b:1", {.mode = "blind"});
  (void)read("c:1", {.mode = "blind"});
  let_pass("a:1", 1'000);
  EXPECT_GT(token_in(write("b:1", {.mode = "blind"})), 0U);
  EXPECT_EQ(inside(), Inside{"b:1"});
}

TEST_F(SharingTest, WhoAsksAgainHasNotJoinedAgain) {
  (void)write("a:1");
  EXPECT_EQ(write("b:1", {.mode = "queue"}).elements.at(3).integer, 1);
  EXPECT_EQ(write("b:1", {.mode = "queue"}).elements.at(3).integer, 0);
}

TEST_F(SharingTest, WhoTriesIsToldWhenTheFirstLeaseEnds) {
  (void)read("a:1", {.lease_ms = 60'000});
  (void)read("b:1", {.lease_ms = 30'000});
  const auto left = free_in(write("c:1"));
  EXPECT_GT(left, 20'000);
  EXPECT_LE(left, 30'010);
}

TEST_F(SharingTest, TheNextIsToldToLookWhereALeaseIsShorterThanTheTimeToConfirm) {
  RedisConnection next = subscribe("dlock:w:b");
  (void)take("x:1", 1);
  (void)take("a:1", 1, {.mode = "blind"});
  (void)take("b:1", 1, {.mode = "queue"});
  (void)leave("x:1");
  EXPECT_EQ(inside(), Inside{"a:1"});
  server.reset_counts();
  EXPECT_GT(token_in(take("a:1", 1, {.mode = "blind"})), 0U);
  EXPECT_EQ(published(), 0) << "it looks at the end of the time to confirm";
  EXPECT_GT(token_in(take("a:1", 1, {.mode = "blind", .lease_ms = 500})), 0U);
  EXPECT_EQ(published(), 1);
}

TEST_F(SharingTest, AWriterInLineIsAskedWhetherItLivesForReadersOnly) {
  RedisConnection first = subscribe("dlock:w:a");
  (void)read("x:1");
  (void)write("a:1", {.mode = "queue"});
  server.reset_counts();
  EXPECT_TRUE(is_busy(write("b:1")));
  EXPECT_TRUE(is_busy(write("c:1", {.mode = "blind"})));
  EXPECT_EQ(published(), 0);
  EXPECT_TRUE(is_busy(read("d:1")));
  EXPECT_EQ(published(), 1);
}

}  // namespace

}  // namespace dlock::test
