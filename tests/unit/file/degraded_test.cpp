// Without inotify, or without enough of it. Runs in a user namespace of its own, where its limits are ours to set.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <future>
#include <string>

#include "support.hpp"

namespace dlock::file::test {
namespace {

using namespace std::chrono_literals;

constexpr const char* kInstances = "/proc/sys/user/max_inotify_instances";
constexpr const char* kWatches = "/proc/sys/user/max_inotify_watches";

void limit(const char* what, int value) {
  const int fd = ::open(what, O_WRONLY | O_CLOEXEC);
  const std::string text = std::to_string(value);
  require_permitted(fd >= 0 && ::write(fd, text.data(), text.size()) == static_cast<ssize_t>(text.size()), what);
  ::close(fd);
}

std::string with_limit(const char* what, int value, const std::function<void()>& body) {
  return in_child([&] {
    // Refused to a process with several threads, too, such as every one that is built with ThreadSanitizer.
    require_permitted(::unshare(CLONE_NEWUSER) == 0, "unshare(CLONE_NEWUSER)");
    limit(what, value);
    body();
  });
}

class FileDegradedTest : public testing::Test {
 protected:
  // Waiters in one client get the lock, one after the other, after its release by another client.
  void require_hand_over() {
    std::promise<void> served;
    int left = 3;
    const auto recorder = std::make_shared<Recorder>();
    const auto holder = connect(scratch_.url());
    const auto client = connect(scratch_.url(), {.observer = recorder});
    auto lease = holder.make_lock("a").acquire();
    for (int i = left; i > 0; --i) {
      client.make_lock("a").async_acquire({}, [&](std::error_code ec, const Lease& won) {
        if (!ec && won.held() && --left == 0) served.set_value();
      });
    }
    (void)client.inspect("a");
    require(lease.release(), "the release failed");
    require(served.get_future().wait_for(hang_guard) == std::future_status::ready, "the waiters were not served");
    require(recorder->warnings().size() == 1, "warned " + std::to_string(recorder->warnings().size()) + " times");
    const Failure warning = recorder->warnings()[0].reason;
    require(warning.detail.find("inotify") != std::string::npos, warning.detail);
    for (const auto& finding : client.diagnose()) {
      if (finding.check == "inotify") severity_ = finding.severity;
    }
  }

  ScratchDirectory scratch_;
  Finding::Severity severity_ = Finding::Severity::note;
};

TEST_F(FileDegradedTest, WithoutInotifyWaitersPollAndTheUserIsTold) {
  EXPECT_WELL(with_limit(kInstances, 0, [&] {
    require_hand_over();
    require(severity_ == Finding::Severity::warning, "diagnose() does not tell");
  }));
}

TEST_F(FileDegradedTest, WithTooFewWatchesWaitersPollAndTheUserIsTold) {
  EXPECT_WELL(with_limit(kWatches, 2, [&] { require_hand_over(); }));
}

TEST_F(FileDegradedTest, WithoutInotifyALossIsNoticedWithinASecond) {
  EXPECT_WELL(with_limit(kInstances, 0, [&] {
    const auto clock = std::make_shared<ManualClock>();
    const auto client = connect(scratch_.url(), {.clock = clock});
    const auto lease = client.make_lock("a").acquire();
    std::filesystem::remove(scratch_.locks() + "/a.lock");
    require(lease.held(), "nothing has happened yet");
    require(advance_until(*clock, 1100ms, [&] { return !lease.held(); }), "the loss was not noticed");
  }));
}

TEST_F(FileDegradedTest, InotifyIsTakenUpAgainWhenThereIsRoom) {
  EXPECT_WELL(with_limit(kInstances, 0, [&] {
    const auto clock = std::make_shared<ManualClock>();
    const auto client = connect(scratch_.url(), {.clock = clock});
    const auto lease = client.make_lock("a").acquire();
    limit(kInstances, 10);
    (void)advance_until(*clock, 1100ms, [] { return false; });  // it looks once a second
    std::filesystem::remove(scratch_.locks() + "/a.lock");
    require(wait_for_loss(lease), "no signal, though the clock stands still");
  }));
}

}  // namespace
}  // namespace dlock::file::test
