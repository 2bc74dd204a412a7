// Small parts: lifetimes, back-offs, texts of holders, the registry of schemes, pauses against a livelock.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>

#include <dlock/client.hpp>
#include <dlock/error.hpp>
#include <dlock/spi/backend.hpp>
#include <dlock/spi/backoff.hpp>
#include <dlock/spi/lifetime.hpp>

#include "core/api/livelock_backoff.hpp"
#include "core/spi/registry.hpp"
#include "tests/support/manual_engine.hpp"

namespace dlock {
namespace {

using namespace std::chrono_literals;

TEST(Lifetime, GuardedHandler_RunsWhileItsOwnerLives) {
  std::optional<Lifetime> one(std::in_place);
  const Lifetime other;
  std::string received;
  const auto append = [&](const std::string& text, int number) { received += text + std::to_string(number); };
  const std::function<void(const std::string&, int)> of_one = one->guard(append);
  const std::function<void(const std::string&, int)> of_other = other.guard(append);
  const Lifetime::Watch first = one->watch();
  const Lifetime::Watch second = one->watch();
  of_one("a", 1);
  of_one("b", 2);
  EXPECT_FALSE(first.over());
  one.reset();
  of_one("c", 3);
  of_other("d", 4);
  EXPECT_EQ(received, "a1b2d4");
  EXPECT_TRUE(first.over() && second.over());
}

TEST(Backoff, Pauses_DoubleUpToTheLongestAndAreRandom) {
  test::ManualEngine engine;
  Backoff backoff(100ms);
  for (const auto at_most : {20ms, 40ms, 80ms, 100ms, 100ms}) {
    const auto pause = backoff.next(engine);
    EXPECT_GE(pause, at_most / 2);
    EXPECT_LT(pause, at_most);
  }
  backoff.reset();
  EXPECT_LT(backoff.next(engine), 20ms);
}

TEST(RandomBetween, Bounds_AreKept) {
  test::ManualEngine engine;
  EXPECT_EQ(random_between(5ms, 5ms, engine), 5ms);
  EXPECT_EQ(random_between(6ms, 5ms, engine), 6ms) << "there is nothing between them";
  bool differ = false;
  const auto first = random_between(0s, 1h, engine);
  for (int i = 0; i < 100; ++i) {
    const auto drawn = random_between(0s, 1h, engine);
    EXPECT_GE(drawn, 0s);
    EXPECT_LT(drawn, 1h);
    differ = differ || drawn != first;
  }
  EXPECT_TRUE(differ);
}

TEST(HolderText, ValueOfACandidate_IsPartOfIt) {
  const auto written = [](LockKind kind, const std::string& value) {
    LockRequest request;
    request.holder = "h:1:l";
    request.kind = kind;
    request.value = value;
    return holder_text(request);
  };
  const auto read = [](LockKind kind, std::string_view text) {
    LockInfo info;
    info.kind = kind;
    set_holder(info, text);
    return std::pair(info.holder, info.value);
  };
  using Pair = std::pair<std::string, std::string>;
  for (const LockKind kind : {LockKind::lock, LockKind::read_write, LockKind::semaphore}) {
    EXPECT_EQ(written(kind, "v"), "h:1:l");
    EXPECT_EQ(read(kind, "h\nv"), Pair("h\nv", ""));
  }
  for (const std::string value : {"", "10.0.0.7:80", "a\nb"}) {
    EXPECT_EQ(read(LockKind::election, written(LockKind::election, value)), Pair("h:1:l", value));
  }
  EXPECT_EQ(read(LockKind::election, "other program's"), Pair("other program's", ""));
  EXPECT_EQ(read(LockKind::election, ""), Pair("", ""));
}

TEST(Registry, Scheme_IsRegisteredOnceAndOtherTextRefused) {
  const BackendFactory factory = [](BackendHost&, const BackendConfig&) -> std::unique_ptr<Backend> {
    throw Error(errc::unsupported, "made for a test");
  };
  const auto refusal = [](const std::function<void()>& call) -> std::string {
    try {
      call();
    } catch (const Error& e) {
      EXPECT_EQ(e.code(), errc::invalid_argument);
      return e.detail();
    }
    return {};
  };
  EXPECT_EQ(refusal([&] { register_backend("registry-test-a", factory); }), "");
  EXPECT_NE(refusal([&] { register_backend("registry-test-a", factory); }).find("\"registry-test-a\""),
            std::string::npos);
  EXPECT_NE(refusal([&] { register_backend("registry-test-b", nullptr); }).find("registry-test-b"), std::string::npos);
  for (const char* scheme : {"", "1a", "Upper", "with space", "a_b", "a://"}) {
    EXPECT_NE(refusal([&] { register_backend(scheme, factory); }), "") << scheme;
  }
  const auto known = backends();
  EXPECT_TRUE(std::is_sorted(known.begin(), known.end()));
  EXPECT_EQ(std::ranges::count(known, "registry-test-a"), 1);
  EXPECT_EQ(std::ranges::count(known, "registry-test-b"), 0);
  EXPECT_TRUE(detail::find_backend("registry-test-a"));
  const std::string unknown = refusal([] { (void)detail::find_backend("nonesuch"); });
  EXPECT_NE(unknown.find("\"nonesuch\""), std::string::npos) << unknown;
  EXPECT_NE(unknown.find("registry-test-a"), std::string::npos) << unknown;
}

// --- Pauses against a livelock
// -----------------------------------------------------------------------------------------

using detail::LivelockBackoff;

class LivelockBackoffTest : public testing::Test {
 protected:
  // Holds one lock for so long, and finds another one busy.
  void hold_in_vain(LivelockBackoff::Duration how_long) {
    backoff.entered(now);
    now += how_long;
    backoff.tried_in_vain(&busy, now);
    backoff.left();
  }

  LivelockBackoff backoff;
  const int busy = 0;
  LivelockBackoff::TimePoint now;
};

TEST_F(LivelockBackoffTest, WithoutALockHeldInVain_NoPauseIsDue) {
  EXPECT_EQ(backoff.take(&busy), 0ms);
  backoff.tried_in_vain(&busy, now);
  EXPECT_EQ(backoff.take(&busy), 0ms) << "nothing was held";
  backoff.entered(now);
  backoff.entered(now + 5ms);
  backoff.left();
  backoff.left();
  EXPECT_EQ(backoff.take(&busy), 0ms) << "nothing was busy";
}

TEST_F(LivelockBackoffTest, LockHeldInVain_PausesOnceBeforeTheBusyLock) {
  const int another = 0;
  for (int i = 0; i < 2; ++i) {
    backoff.entered(now);
    now += 3ms;
    backoff.tried_in_vain(&busy, now);
    EXPECT_EQ(backoff.take(&busy), 0ms) << "held";
    backoff.left();
    EXPECT_EQ(backoff.take(&another), 0ms);
    EXPECT_EQ(backoff.take(&busy), 3ms);
    EXPECT_EQ(backoff.take(&busy), 0ms);
    hold_in_vain(3ms);
    now += 1h;  // what was long ago is forgotten
  }
}

TEST_F(LivelockBackoffTest, Pauses_DoubleUpToABoundAndBeginAnewAfterASuccess) {
  hold_in_vain(3ms);
  hold_in_vain(3ms);
  EXPECT_EQ(backoff.take(&busy), 6ms);
  for (int i = 0; i < 20; ++i) hold_in_vain(3ms);
  EXPECT_EQ(backoff.take(&busy), LivelockBackoff::longest);
  backoff.entered(now);
  backoff.entered(now);  // both at once
  backoff.left();
  backoff.left();
  hold_in_vain(3ms);
  EXPECT_EQ(backoff.take(&busy), 3ms);
}

TEST_F(LivelockBackoffTest, EachThread_HasItsOwn) {
  LivelockBackoff& mine = LivelockBackoff::of_this_thread();
  std::jthread([&] { EXPECT_NE(&LivelockBackoff::of_this_thread(), &mine); }).join();
  EXPECT_EQ(&LivelockBackoff::of_this_thread(), &mine);
}

}  // namespace
}  // namespace dlock
