#include "backends/file/slots.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <set>
#include <string>
#include <vector>

#include "support.hpp"
#include "util/unique_fd.hpp"

namespace dlock::file::test {
namespace {

class SlotsTest : public testing::Test {
 protected:
  [[nodiscard]] util::UniqueFd open() const {
    return util::UniqueFd(::open(path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  }
  [[nodiscard]] std::optional<std::uint32_t> take(int fd, std::uint32_t slots) {
    auto taken = take_slot(fd, path_, slots, [this] { return random_++; });
    EXPECT_TRUE(taken.ok());
    return taken.value();
  }
  [[nodiscard]] bool free(std::uint32_t slots) {
    auto look = look_for_slot(open().get(), path_, slots);
    return look.ok() && look.value() == LockState::free;
  }

  const ScratchDirectory scratch_;
  const std::string path_ = scratch_.path() + "/file";
  std::uint64_t random_ = 0;
};

TEST_F(SlotsTest, EachIsTakenOnceUntilThereAreNoneWhateverChanceSays) {
  for (const std::uint32_t slots : {1U, 2U, 4U, 5U, 64U}) {
    std::vector<util::UniqueFd> holders;
    std::set<std::uint32_t> taken;
    for (std::uint32_t i = 0; i < slots; ++i) {
      EXPECT_TRUE(free(slots));
      holders.push_back(open());
      const auto slot = take(holders.back().get(), slots);
      ASSERT_TRUE(slot.has_value());
      EXPECT_LT(*slot, slots);
      EXPECT_TRUE(taken.insert(*slot).second) << *slot << " twice";
    }
    EXPECT_FALSE(free(slots));
    EXPECT_FALSE(take(open().get(), slots).has_value());
    holders.erase(holders.begin());
    EXPECT_TRUE(free(slots));
  }
}

TEST_F(SlotsTest, AFileOfFewHoldersIsSmall) {
  std::vector<util::UniqueFd> holders;
  for (int i = 0; i < 4; ++i) {
    holders.push_back(open());
    EXPECT_LT(take(holders.back().get(), reader_slots).value_or(reader_slots), 64U);
  }
}

TEST_F(SlotsTest, AllHoldersAreFoundWhereverTheirSlotsAre) {
  std::vector<util::UniqueFd> holders;
  for (const std::uint32_t slot : {reader_slots - 1, 0U, 7U, 8U, 1000U}) {
    holders.push_back(open());
    ASSERT_TRUE(take_lock(holders.back().get(), path_, LockType::write, slot_byte(slot)).ok());
    const LockRecord record{.token = slot + 1U, .holder = std::to_string(slot), .pid = 4};
    const std::string block = format_block(record, "a", LockKind::semaphore);
    ASSERT_EQ(::pwrite(holders.back().get(), block.data(), block.size(), slot_byte(slot).begin),
              static_cast<ssize_t>(block.size()));
  }
  auto found = holders_in_slots(open().get(), path_, LockKind::semaphore);
  ASSERT_TRUE(found.ok());
  std::vector<std::string> names;
  for (const SlotHolder& each : found.value()) names.push_back(each.info.holder);
  EXPECT_EQ(names, (std::vector<std::string>{"0", "7", "8", "1000", std::to_string(reader_slots - 1)}));
}

TEST_F(SlotsTest, AHolderWhoIsJustWritingIsCountedWithoutAName) {
  const auto holder = open();
  ASSERT_TRUE(take_lock(holder.get(), path_, LockType::write, slot_byte(3)).ok());
  auto found = holders_in_slots(open().get(), path_, LockKind::read_write);
  ASSERT_TRUE(found.ok());
  ASSERT_EQ(found.value().size(), 1U);
  EXPECT_EQ(found.value()[0].info.holder, "");
  EXPECT_EQ(found.value()[0].pid, 0);
}

TEST_F(SlotsTest, WhoHasTheWholeFileIsNoHolder) {
  const auto forgetting = open();
  ASSERT_TRUE(take_lock(forgetting.get(), path_).ok());
  auto found = holders_in_slots(open().get(), path_, LockKind::semaphore);
  ASSERT_TRUE(found.ok());
  EXPECT_TRUE(found.value().empty());
}

TEST_F(SlotsTest, OneEntersAtATime) {
  const auto one = open();
  const auto two = open();
  const auto begin = [&](int fd) {
    auto entry = begin_entry(fd, path_);
    return entry.ok() && entry.value() == LockState::free;
  };
  EXPECT_TRUE(begin(one.get()));
  EXPECT_FALSE(begin(two.get()));
  drop_lock(one.get(), entry_byte);
  EXPECT_TRUE(begin(two.get()));
}

}  // namespace
}  // namespace dlock::file::test
