#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include <dlock/backend.hpp>

namespace dlock {
namespace {

LockRequest request(Space space, const std::string& value) {
  LockRequest of;
  of.holder = "h:1:l";
  of.space = space;
  of.value = value;
  return of;
}

LockInfo read(Space space, std::string_view text) {
  LockInfo info;
  info.space = space;
  set_holder(info, text);
  return info;
}

TEST(HolderText, OfALockIsTheHolder) {
  for (const Space space : {Space::lock, Space::read_write, Space::semaphore}) {
    EXPECT_EQ(holder_text(request(space, "v")), "h:1:l");
    EXPECT_EQ(read(space, "h\nv").holder, "h\nv");
    EXPECT_EQ(read(space, "h\nv").value, "");
  }
}

TEST(HolderText, OfACandidateHasItsValue) {
  for (const std::string value : {"", "10.0.0.7:80", "a\nb"}) {
    const std::string text = holder_text(request(Space::election, value));
    EXPECT_EQ(read(Space::election, text).holder, "h:1:l");
    EXPECT_EQ(read(Space::election, text).value, value);
  }
}

TEST(HolderText, OfAnotherProgramIsItsOwn) {
  EXPECT_EQ(read(Space::election, "somebody").holder, "somebody");
  EXPECT_EQ(read(Space::election, "somebody").value, "");
  EXPECT_EQ(read(Space::election, "").holder, "");
}

}  // namespace
}  // namespace dlock
