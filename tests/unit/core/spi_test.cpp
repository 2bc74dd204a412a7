// Small parts: lifetimes, tasks, back-offs, texts of holders, the registry of schemes, pauses against a livelock.
#include <gtest/gtest.h>

#include <array>
#include <string>
#include <string_view>
#include <thread>
#include <type_traits>

#include <dlock/client.hpp>
#include <dlock/error.hpp>
#include <dlock/spi/backend.hpp>
#include <dlock/spi/backoff.hpp>
#include <dlock/spi/lifetime.hpp>
#include <dlock/spi/task.hpp>

#include "core/api/livelock_backoff.hpp"
#include "core/spi/registry.hpp"
#include "tests/support/manual_engine.hpp"
#include "tests/support/refusals.hpp"

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
  const auto refusal = [](const auto& call) {
    const Failure why = test::thrown_by(call);
    EXPECT_TRUE(!why.code || why.code == errc::invalid_argument);
    return why.detail;
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

// --- Pauses against a livelock ---------------------------------------------------------------------------------------

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

// --- Tasks -----------------------------------------------------------------------------------------------------------

static_assert(!std::is_copy_constructible_v<Task> && !std::is_copy_assignable_v<Task>);
static_assert(std::is_nothrow_move_constructible_v<Task> && std::is_nothrow_move_assignable_v<Task>);
static_assert(std::is_constructible_v<Callback<int>, void (*)(int)>);
static_assert(!std::is_constructible_v<Callback<int>, void (*)(std::string)>);

// Counts how many of it live, and knows its own address. `Bytes` decides whether it fits into a task.
template <std::size_t Bytes, bool NoexceptMove = true>
struct Tracked {
  explicit Tracked(int& counter) : living(&counter) { ++*living; }
  Tracked(const Tracked&) = delete;
  Tracked& operator=(const Tracked&) = delete;
  Tracked(Tracked&& other) noexcept(NoexceptMove) : living(other.living) { ++*living; }
  ~Tracked() {
    EXPECT_EQ(self, this) << "an object that was never made, or destroyed before";
    self = nullptr;
    --*living;
  }
  void operator()() const { EXPECT_EQ(self, this); }

  int* living;
  const void* self = this;
  std::array<std::byte, Bytes> room{};
};

using Small = Tracked<8>;
using Large = Tracked<200>;
using MayThrow = Tracked<8, false>;

template <class Held>
bool is_in_place() {
  int living = 0;
  std::uintptr_t address = 0;
  struct Where {
    explicit Where(int& counter) : held(counter) {}
    void operator()(std::uintptr_t& out) { out = reinterpret_cast<std::uintptr_t>(this); }
    Held held;
  };
  const Callback<std::uintptr_t&> callback{Where(living)};
  callback(address);
  const auto begin = reinterpret_cast<std::uintptr_t>(&callback);
  return address >= begin && address < begin + sizeof callback;
}

template <class T>
class TaskOf : public testing::Test {};
using All = testing::Types<Small, Large, MayThrow>;
TYPED_TEST_SUITE(TaskOf, All);

TYPED_TEST(TaskOf, Callable_IsDestroyedExactlyOnce) {
  int living = 0;
  EXPECT_FALSE(Task() || Task(nullptr));
  { const Task task{TypeParam(living)}; }
  EXPECT_EQ(living, 0);
  Task first{TypeParam(living)};
  first();
  EXPECT_EQ(living, 1) << "a call leaves it there";
  Task second = std::move(first);
  EXPECT_EQ(living, 1);
  EXPECT_FALSE(first);  // NOLINT(bugprone-use-after-move): empty, as documented
  second();
  Task third;
  third = std::move(second);
  EXPECT_EQ(living, 1);
  third();
  third = std::move(first);
  EXPECT_EQ(living, 0) << "what an empty one is assigned to is empty";
  EXPECT_FALSE(third);
  int after = 0;
  third = TypeParam(living);
  third = TypeParam(after);
  EXPECT_EQ(living, 0);
  Task& itself = third;
  third = std::move(itself);
  EXPECT_EQ(after, 1);
  third();
  third = nullptr;
  EXPECT_EQ(after, 0);
  EXPECT_FALSE(third);
}

// A destructor of the user may do anything, such as set the very handler anew of which it was part.
TYPED_TEST(TaskOf, DestructorOfTheCallable_MayAssignTheTask) {
  struct Assigns {
    Assigns(Task& of, TypeParam&& held) : task(&of), kept(std::move(held)) {}
    Assigns(Assigns&& other) noexcept(std::is_nothrow_move_constructible_v<TypeParam>)
        : task(std::exchange(other.task, nullptr)), kept(std::move(other.kept)) {}
    ~Assigns() {
      if (task != nullptr) *task = TypeParam(*kept.living);
    }
    void operator()() const {}
    Task* task;
    TypeParam kept;
  };
  int living = 0;
  Task task;
  task = Assigns(task, TypeParam(living));
  EXPECT_EQ(living, 1);
  task = nullptr;
  ASSERT_TRUE(task) << "the assignment of the destructor was the last";
  EXPECT_EQ(living, 1);
  task();

  task = nullptr;
  EXPECT_EQ(living, 0);
  task = Assigns(task, TypeParam(living));
  task = [] {};
  ASSERT_TRUE(task);
  EXPECT_EQ(living, 1);
  task();
}

TEST(Task, SmallCallable_IsKeptInPlace) {
  EXPECT_TRUE(is_in_place<Small>());
  EXPECT_FALSE(is_in_place<Large>());
  EXPECT_FALSE(is_in_place<MayThrow>());
  EXPECT_TRUE((is_in_place<Tracked<6 * sizeof(void*) - 2 * sizeof(void*)>>()));
  EXPECT_FALSE((is_in_place<Tracked<6 * sizeof(void*) - 2 * sizeof(void*) + 1>>()));
  struct alignas(64) Aligned {
    void operator()(std::uintptr_t& out) { out = reinterpret_cast<std::uintptr_t>(this); }
  };
  std::uintptr_t address = 1;
  const Callback<std::uintptr_t&> callback{Aligned{}};
  callback(address);
  EXPECT_EQ(address % 64, 0U);
}

TEST(Task, EachKindOfCallable_IsCalled) {
  static int seen = 0;
  seen = 0;
  Task task = [own = 0, number = std::make_unique<int>(40)]() mutable { seen = ++own + *number; };
  const Task moved = std::move(task);
  moved();
  moved();
  EXPECT_EQ(seen, 42) << "it may be called more than once and keeps its state";
  const Callback<int> function = +[](int by) { seen += by; };
  function(1);
  const Callback<int> wrapped = std::function<void(int)>([](int by) { seen += by; });
  wrapped(10);
  EXPECT_EQ(seen, 53);
  struct Counter {
    void add() { ++count; }
    int count = 0;
  };
  Counter counter;
  const Callback<Counter&> member = &Counter::add;
  member(counter);
  EXPECT_EQ(counter.count, 1);
}

TEST(Task, Arguments_AreForwarded) {
  std::string copy = "kept";
  std::unique_ptr<int> got;
  const Callback<const std::string&, std::unique_ptr<int>> callback = [&](const std::string& text,
                                                                          std::unique_ptr<int> number) {
    EXPECT_EQ(&text, &copy) << "a reference stays one";
    got = std::move(number);
  };
  callback(copy, std::make_unique<int>(7));
  ASSERT_TRUE(got);
  EXPECT_EQ(*got, 7);
}

TEST(Task, ExceptionOfTheCallable_LeavesTheTaskAsItWas) {
  struct Throws {
    Throws() = default;
    Throws(const Throws&) { throw std::runtime_error("copied"); }
    void operator()() const {}
  };
  const Throws throws;
  EXPECT_THROW(Task{throws}, std::runtime_error);
  int living = 0;
  Task task{Small(living)};
  EXPECT_THROW(task = Task(throws), std::runtime_error);
  EXPECT_TRUE(task) << "what was there is still there";
  EXPECT_EQ(living, 1);
  task = [] { throw std::runtime_error("called"); };
  EXPECT_THROW(task(), std::runtime_error);
}

}  // namespace
}  // namespace dlock
