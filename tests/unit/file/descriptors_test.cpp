// Descriptors: what a fork does with them, events of inotify, and locks of bytes.
#include <gmock/gmock.h>
#include <sys/inotify.h>

#include <set>

#include "backends/file/fork_guard.hpp"
#include "backends/file/inotify.hpp"
#include "backends/file/slots.hpp"
#include "member.hpp"
#include "support.hpp"
#include "util/unique_fd.hpp"

namespace dlock::file::test {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::Pair;

int open_null() {
  return ::open("/dev/null", O_RDONLY | O_CLOEXEC);
}
bool is_open(int fd) {
  return ::fcntl(fd, F_GETFD) >= 0;
}

TEST(ForkGuard, Child_ClosesItsDescriptors) {
  GuardedFd guarded = GuardedFd::open(open_null);
  const int plain = open_null();
  ASSERT_TRUE(guarded);
  EXPECT_EQ(in_child([&] {
              require(!is_open(guarded.get()), "the guarded descriptor is open");
              require(is_open(plain), "a stranger's descriptor is closed");
              GuardedFd own = GuardedFd::open(open_null);
              const std::string problem = in_child([&] { require(!is_open(own.get()), "open in the grandchild"); });
              require(problem.empty(), problem);
              require(is_open(own.get()), "closed in the child");
            }),
            "");
  EXPECT_TRUE(is_open(guarded.get()));
  ::close(plain);
}

TEST(ForkGuard, ReusedDescriptor_IsNotClosedInAChild) {
  GuardedFd guarded = GuardedFd::open(open_null);
  EXPECT_EQ(in_child([&] {
              const int number = guarded.get();
              require(::dup2(0, number) == number, "dup2");
              guarded.reset();
              require(is_open(number), "a stranger's descriptor was closed");
              ::close(number);
              // Not even when the number is guarded anew, by the child's own client.
              GuardedFd other = GuardedFd::open([&] { return ::fcntl(0, F_DUPFD_CLOEXEC, number); });
              require(other.get() == number, "another number");
              GuardedFd stale = std::move(guarded);
              stale.reset();
              require(is_open(number), "the child's own descriptor was closed");
            }),
            "");
}

TEST(ForkGuard, ForkDuringOpen_OpensAgain) {
  int opened = 0;
  GuardedFd warm_up = GuardedFd::open(open_null);  // installs the handlers
  GuardedFd guarded = GuardedFd::open([&] {
    const int fd = open_null();
    if (++opened == 1) {
      const pid_t child = ::fork();
      if (child == 0) ::_exit(0);
      ::waitpid(child, nullptr, 0);
    }
    return fd;
  });
  EXPECT_EQ(opened, 2);
  EXPECT_TRUE(is_open(guarded.get()));
}

// --- Events ---

// A subscription that keeps its events.
struct Listening {
  std::vector<std::pair<std::uint32_t, std::string>> events = {};
  std::function<void()> then = [] {};
  Inotify::Subscription subscription = {};
};

class InotifyTest : public testing::Test {
 protected:
  InotifyTest() {
    for (const auto& path : {a_, b_}) write_file(path, "");
  }
  int listen(const std::string& path, std::uint32_t mask, Listening& listening) {
    const util::UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    return inotify_.subscribe(fd.get(), mask, listening.subscription,
                              [&listening](std::uint32_t event, std::string_view entry) {
                                listening.events.emplace_back(event, entry);
                                listening.then();
                              });
  }
  void write_to(const std::string& path) {
    write_file(path, "x");
    executor_.run();
  }

  ScratchDirectory scratch_;
  const std::string a_ = scratch_.path() + "/a";
  const std::string b_ = scratch_.path() + "/b";
  PollExecutor executor_;
  Inotify inotify_{executor_};
  Listening first_;
  Listening second_;
};

TEST_F(InotifyTest, SubscriptionEnded_ReportsNoEarlierEvents) {
  ASSERT_EQ(listen(a_, IN_CLOSE_WRITE, first_), 0);
  write_file(a_, "x");
  first_.subscription.reset();
  executor_.run();
  EXPECT_THAT(first_.events, IsEmpty());
}

TEST_F(InotifyTest, SharedFile_IsWatchedUntilTheLastEnds) {
  ASSERT_EQ(listen(a_, IN_CLOSE_WRITE, first_), 0);
  ASSERT_EQ(listen(a_, IN_CLOSE_WRITE, second_), 0);
  first_.subscription.reset();
  write_to(a_);
  EXPECT_THAT(first_.events, IsEmpty());
  EXPECT_EQ(second_.events.size(), 1U);
}

TEST_F(InotifyTest, Subscription_MayBeRenewedOrMoved) {
  for (int i = 0; i < 2; ++i) ASSERT_EQ(listen(a_, IN_CLOSE_WRITE, first_), 0);
  write_to(a_);
  EXPECT_EQ(first_.events.size(), 1U);
  ASSERT_EQ(listen(b_, IN_CLOSE_WRITE, first_), 0);
  write_to(a_);
  EXPECT_EQ(first_.events.size(), 1U);
  write_to(b_);
  EXPECT_EQ(first_.events.size(), 2U);
}

TEST_F(InotifyTest, Handler_MayEndAnySubscription) {
  ASSERT_EQ(listen(a_, IN_CLOSE_WRITE, first_), 0);
  ASSERT_EQ(listen(a_, IN_CLOSE_WRITE, second_), 0);
  first_.then = [&] {
    first_.subscription.reset();
    second_.subscription.reset();
  };
  write_to(a_);
  EXPECT_EQ(first_.events.size(), 1U);
  EXPECT_THAT(second_.events, IsEmpty());
}

TEST_F(InotifyTest, ExecutorFails_AllAreNotified) {
  ASSERT_EQ(listen(a_, IN_CLOSE_WRITE, first_), 0);
  ASSERT_EQ(listen(b_, IN_CLOSE_WRITE, second_), 0);
  executor_.fail();
  for (const Listening* each : {&first_, &second_}) {
    EXPECT_THAT(each->events, ElementsAre(Pair(IN_Q_OVERFLOW, "")));
  }
}

TEST_F(InotifyTest, AfterAFailure_NextCallSucceeds) {
  executor_.refuse_descriptors = true;
  EXPECT_EQ(listen(a_, IN_CLOSE_WRITE, first_), ENOMEM);
  EXPECT_FALSE(first_.subscription.active());
  executor_.refuse_descriptors = false;
  EXPECT_EQ(listen("nowhere", IN_CLOSE_WRITE, first_), ENOENT);
  EXPECT_FALSE(first_.subscription.active());
  EXPECT_EQ(listen(a_, IN_CLOSE_WRITE, first_), 0);
  EXPECT_TRUE(first_.subscription.active());
  EXPECT_EQ(listen("nowhere", IN_CLOSE_WRITE, first_), ENOENT);
  EXPECT_FALSE(first_.subscription.active()) << "of the file before";
}

// --- Locks of bytes ---

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
