#include "torture/worker/resource.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <system_error>

#include "torture/rig/scratch_directory.hpp"

namespace dlock::torture {
namespace {

class ResourceTest : public testing::Test {
 protected:
  rig::ScratchDirectory scratch;
  std::string socket = scratch.path() + "/socket";
  std::string history = scratch.path() + "/resource.jsonl";
};

TEST_F(ResourceTest, RefusesWhatIsOlderThanTheNewestOfThatLock) {
  {
    const Resource resource(socket, history, {"a", "b"});
    ResourceClient one(socket);
    ResourceClient other(socket);
    EXPECT_TRUE(one.access(0, Mode::exclusive, FencingToken(5)));
    EXPECT_TRUE(one.access(0, Mode::exclusive, FencingToken(5))) << "a holder writes more than once";
    EXPECT_TRUE(other.access(0, Mode::exclusive, FencingToken(6)));
    EXPECT_FALSE(one.access(0, Mode::exclusive, FencingToken(5)));
    EXPECT_TRUE(one.access(1, Mode::exclusive, FencingToken(1))) << "each lock has a newest token of its own";
  }
  const auto events = read_history(history);
  ASSERT_EQ(events.size(), 5U);
  std::vector<bool> taken;
  for (const Event& event : events) {
    EXPECT_EQ(event.kind, Kind::served);
    taken.push_back(event.yes);
  }
  EXPECT_THAT(taken, testing::ElementsAre(true, true, true, false, true));
  EXPECT_EQ(events[3].lock, "a");
  EXPECT_EQ(events[3].token, FencingToken(5));
  EXPECT_EQ(events[4].lock, "b");
}

// A writer of long ago must not write under a reader who has come since.
TEST_F(ResourceTest, RefusesAReadThatIsOlderThanAWriteAndAWriteThatIsOlderThanARead) {
  {
    const Resource resource(socket, history, {"a"}, LockKind::read_write);
    ResourceClient client(socket);
    EXPECT_TRUE(client.access(0, Mode::exclusive, FencingToken(5)));
    EXPECT_FALSE(client.access(0, Mode::shared, FencingToken(4)));
    EXPECT_TRUE(client.access(0, Mode::shared, FencingToken(9)));
    EXPECT_TRUE(client.access(0, Mode::shared, FencingToken(7))) << "readers may be told of their tokens in any order";
    EXPECT_FALSE(client.access(0, Mode::exclusive, FencingToken(8)));
    EXPECT_TRUE(client.access(0, Mode::shared, FencingToken(8))) << "a write that was refused is none";
  }
  const auto events = read_history(history);
  ASSERT_EQ(events.size(), 6U);
  EXPECT_EQ(events[1].lock_kind, LockKind::read_write);
  EXPECT_EQ(events[1].mode, Mode::shared);
}

TEST_F(ResourceTest, GoesOnWithoutAClientThatHasGoneOrSendsNonsense) {
  const Resource resource(socket, history, {"a"});
  { const ResourceClient gone(socket); }
  ResourceClient nonsense(socket);
  EXPECT_THROW((void)nonsense.access(1, Mode::exclusive, FencingToken(1)), std::system_error)
      << "there is no such lock";
  ResourceClient good(socket);
  EXPECT_TRUE(good.access(0, Mode::exclusive, FencingToken(1)));
}

TEST_F(ResourceTest, ASocketThatCannotBeIsRefused) {
  EXPECT_THROW(ResourceClient client(socket), std::system_error) << "nobody listens";
  EXPECT_THROW(Resource(scratch.path() + "/" + std::string(200, 'x'), history, {"a"}), std::system_error);
}

}  // namespace
}  // namespace dlock::torture
