// Without inotify, or without enough of it. Runs in a user namespace of its own, where its limits are ours to set.
#include <gtest/gtest.h>
#include <sched.h>

#include <chrono>
#include <filesystem>
#include <string>

#include "member.hpp"
#include "support.hpp"

namespace dlock::file::test {
namespace {

using namespace std::chrono_literals;

constexpr const char* kInstances = "/proc/sys/user/max_inotify_instances";
constexpr const char* kWatches = "/proc/sys/user/max_inotify_watches";

class FileDegradedTest : public testing::Test {
 protected:
  static std::string with_limit(const char* what, int value, const std::function<void()>& body) {
    return in_child([&] {
      // Refused to a process with several threads, too, such as each that is built with ThreadSanitizer.
      require_permitted(::unshare(CLONE_NEWUSER) == 0, "unshare(CLONE_NEWUSER)");
      write_to(what, std::to_string(value));
      body();
    });
  }
  void lose_file() const { std::filesystem::remove(scratch_.locks() + "/a.lock"); }

  ScratchDirectory scratch_;
};

TEST_F(FileDegradedTest, WaitersPollAndTheUserIsWarnedOnce) {
  for (const auto& [limit, value] : {std::pair(kInstances, 0), std::pair(kWatches, 2)}) {
    EXPECT_WELL(with_limit(limit, value, [&] {
      Member holder(scratch_.locks(), LockKind::lock, 1);
      Member client(scratch_.locks(), LockKind::lock, 2);
      require(holder.enter(), "no lock");
      Waiting first(client);
      Waiting second(client);
      require(!first.in() && holder.leave(), "the first waiter");
      client.executor.advance(150ms);
      require(first.in() && first.leave() && second.in(), "the waiters were not served");
      require(client.host.warnings.size() == 1, "warned " + std::to_string(client.host.warnings.size()) + " times");
      const std::string warning = client.host.warnings[0].reason.detail;
      require(warning.find("inotify is not available for " + scratch_.locks()) != std::string::npos, warning);
      const bool reported = client.finding("inotify").severity == Finding::Severity::warning;
      require(reported == (limit == kInstances), "diagnose(): " + client.finding("inotify").message);
    }));
  }
}

TEST_F(FileDegradedTest, WithoutInotifyALossIsNoticedWithinASecond) {
  EXPECT_WELL(with_limit(kInstances, 0, [&] {
    Member client(scratch_.locks(), LockKind::lock, 1);
    require(client.enter(), "no lock");
    lose_file();
    client.executor.advance(999ms);
    require(client.host.losses.empty(), "nothing reports it before");
    client.executor.advance(1ms);
    require(client.host.losses.size() == 1, "the loss was not noticed");
  }));
}

TEST_F(FileDegradedTest, InotifyIsTakenUpAgainWhenThereIsRoom) {
  EXPECT_WELL(with_limit(kInstances, 0, [&] {
    Member client(scratch_.locks(), LockKind::lock, 1);
    require(client.enter(), "no lock");
    write_to(kInstances, "10");
    client.executor.advance(1s);
    lose_file();
    client.executor.run();
    require(client.host.losses.size() == 1, "no signal, though the clock stands still");
  }));
}

}  // namespace
}  // namespace dlock::file::test
