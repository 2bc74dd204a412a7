#include <dlock/spi/lifetime.hpp>

#include <gtest/gtest.h>

#include <functional>
#include <optional>
#include <string>

namespace dlock {

namespace {

TEST(Lifetime, AGuardedHandlerRunsWhileItsOwnerLives) {
  const Lifetime lifetime;
  std::string heard;
  const std::function<void(const std::string&, int)> handler =
      lifetime.guard([&](const std::string& text, int number) { heard += text + std::to_string(number); });
  handler("a", 1);
  handler("b", 2);
  EXPECT_EQ(heard, "a1b2");
}

TEST(Lifetime, AGuardedHandlerDoesNothingOnceItsOwnerIsGone) {
  std::optional<Lifetime> lifetime(std::in_place);
  int calls = 0;
  const std::function<void()> handler = lifetime->guard([&] { ++calls; });
  lifetime.reset();
  handler();
  EXPECT_EQ(calls, 0);
}

TEST(Lifetime, AWatchTellsThatACallWasTheEnd) {
  std::optional<Lifetime> lifetime(std::in_place);
  const Lifetime::Watch first = lifetime->watch();
  const Lifetime::Watch second = lifetime->watch();
  EXPECT_FALSE(first.over());
  lifetime.reset();
  EXPECT_TRUE(first.over());
  EXPECT_TRUE(second.over());
}

TEST(Lifetime, ThatOfAnotherObjectIsOfNoConcern) {
  std::optional<Lifetime> one(std::in_place);
  const Lifetime other;
  int calls = 0;
  const std::function<void()> handler = other.guard([&] { ++calls; });
  one.reset();
  handler();
  EXPECT_EQ(calls, 1);
}

}  // namespace

}  // namespace dlock
