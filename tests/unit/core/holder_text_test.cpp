#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include <dlock/spi/backend.hpp>

namespace dlock {
namespace {

LockRequest request(LockKind kind, const std::string& value) {
  LockRequest of;
  of.holder = "h:1:l";
  of.kind = kind;
  of.value = value;
  return of;
}

LockInfo read(LockKind kind, std::string_view text) {
  LockInfo info;
  info.kind = kind;
  set_holder(info, text);
  return info;
}

TEST(HolderText, OfALockIsTheHolder) {
  for (const LockKind kind : {LockKind::lock, LockKind::read_write, LockKind::semaphore}) {
    EXPECT_EQ(holder_text(request(kind, "v")), "h:1:l");
    EXPECT_EQ(read(kind, "h\nv").holder, "h\nv");
    EXPECT_EQ(read(kind, "h\nv").value, "");
  }
}

TEST(HolderText, OfACandidateHasItsValue) {
  for (const std::string value : {"", "10.0.0.7:80", "a\nb"}) {
    const std::string text = holder_text(request(LockKind::election, value));
    EXPECT_EQ(read(LockKind::election, text).holder, "h:1:l");
    EXPECT_EQ(read(LockKind::election, text).value, value);
  }
}

TEST(HolderText, OfAnotherProgramIsItsOwn) {
  EXPECT_EQ(read(LockKind::election, "somebody").holder, "somebody");
  EXPECT_EQ(read(LockKind::election, "somebody").value, "");
  EXPECT_EQ(read(LockKind::election, "").holder, "");
}

}  // namespace
}  // namespace dlock
