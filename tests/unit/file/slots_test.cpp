#include "backends/file/slots.hpp"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "support.hpp"
#include "util/unique_fd.hpp"

namespace dlock::file::test {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::Pair;

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

TEST_F(SlotsTest, EachSlot_IsTakenOnce) {
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

TEST_F(SlotsTest, FewHolders_FileIsSmall) {
  std::vector<util::UniqueFd> holders;
  for (int i = 0; i < 4; ++i) {
    holders.push_back(open());
    EXPECT_LT(take(holders.back().get(), reader_slots).value_or(reader_slots), 64U);
  }
}

TEST_F(SlotsTest, AllHolders_AreFound) {
  const auto found = [this](LockKind kind) {
    auto holders = holders_in_slots(open().get(), path_, kind);
    EXPECT_TRUE(holders.ok());
    std::vector<std::pair<std::string, std::int64_t>> names;
    for (const SlotHolder& each : holders.value()) names.emplace_back(each.info.holder, each.pid);
    return names;
  };
  std::vector<util::UniqueFd> holders;
  for (const std::uint32_t slot : {reader_slots - 1, 0U, 7U, 8U, 1000U, 9U}) {
    holders.push_back(open());
    ASSERT_TRUE(take_lock(holders.back().get(), path_, LockType::write, slot_byte(slot)).ok());
    if (slot == 9) break;  // it is just writing its record
    const LockRecord record{.token = slot + 1U, .holder = std::to_string(slot), .pid = 4};
    const std::string block = format_block(record, "a", LockKind::semaphore);
    ASSERT_EQ(::pwrite(holders.back().get(), block.data(), block.size(), slot_byte(slot).begin),
              static_cast<ssize_t>(block.size()));
  }
  EXPECT_THAT(found(LockKind::semaphore), ElementsAre(Pair("", 0), Pair("0", 4), Pair("7", 4), Pair("8", 4),
                                                      Pair("1000", 4), Pair(std::to_string(reader_slots - 1), 4)));
  holders.clear();
  holders.push_back(open());
  ASSERT_TRUE(take_lock(holders.back().get(), path_).ok());
  EXPECT_THAT(found(LockKind::semaphore), IsEmpty()) << "a lock on the whole file is none of a slot";
}

}  // namespace
}  // namespace dlock::file::test
