#include "backends/common/password_file.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <fstream>
#include <string>

#include "torture/rig/scratch_directory.hpp"

namespace dlock::common {

namespace {

class PasswordFileTest : public testing::Test {
 protected:
  [[nodiscard]] PasswordFile holding(const std::string& content) const {
    std::ofstream(path_) << content;
    return {.parameter = "password_file", .path = path_};
  }
  // Why it cannot be read, without what names it.
  [[nodiscard]] std::string problem(const PasswordFile& file) const {
    const auto password = file.read();
    EXPECT_FALSE(password.ok());
    EXPECT_EQ(password.failure().code, errc::unavailable);
    const std::string start = "password_file: \"" + file.path + "\": ";
    EXPECT_TRUE(password.failure().detail.starts_with(start)) << password.failure().detail;
    return password.failure().detail.substr(start.size());
  }

  rig::ScratchDirectory directory_;
  const std::string path_ = directory_.path() + "/secret";
};

TEST_F(PasswordFileTest, Content_IsReadAgainEachTimeWithoutTheEndOfItsLine) {
  const PasswordFile file = holding("first\n");
  EXPECT_EQ(file.read().value(), "first");
  for (const auto& [content, password] :
       {std::pair{"second", "second"}, {"third\r\n", "third"}, {" a b \n", " a b "}}) {
    std::ofstream(path_) << content;
    EXPECT_EQ(file.read().value(), password);
  }
}

TEST_F(PasswordFileTest, UnusableContent_IsRefusedAndNotShown) {
  EXPECT_EQ(problem(holding("")), "the file is empty");
  EXPECT_EQ(problem(holding("\n")), "the file is empty");
  EXPECT_EQ(problem(holding("hidden\nword\n")), "more than one line, where a password was expected");
  EXPECT_EQ(problem(holding("hidden\n\n")), "more than one line, where a password was expected");
  EXPECT_EQ(problem(holding(std::string(5000, 'x'))), "a password of more than 4096 bytes");
  EXPECT_EQ(holding(std::string(4096, 'x') + "\r\n").read().value().size(), 4096U);
}

TEST_F(PasswordFileTest, WhatIsNoFile_IsRefusedWithoutBlocking) {
  EXPECT_EQ(problem({.parameter = "password_file", .path = path_}), "No such file or directory");
  EXPECT_EQ(problem({.parameter = "password_file", .path = directory_.path()}),
            "not a regular file, which each login could read again");
  ASSERT_EQ(::mkfifo(path_.c_str(), 0600), 0);
  EXPECT_EQ(problem({.parameter = "password_file", .path = path_}),
            "not a regular file, which each login could read again");
}

TEST_F(PasswordFileTest, OnceAPasswordWasAccepted_ARefusedOneIsTemporary) {
  const PasswordFile file = holding("secret");
  const PasswordFile copy = file;
  EXPECT_EQ(login_failed(copy, {errc::access_denied, "wrong"}).code, errc::access_denied);
  login_accepted(file);
  EXPECT_EQ(login_failed(copy, {errc::access_denied, "wrong"}).code, errc::unavailable);
  EXPECT_EQ(login_failed(copy, {errc::protocol, "odd"}).code, errc::protocol);
}

}  // namespace

}  // namespace dlock::common
