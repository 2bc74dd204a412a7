#include <dlock/spi/task.hpp>

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>

namespace dlock {
namespace {

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
