#include "backends/file/file_backend.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "support.hpp"

namespace dlock::file::test {
namespace {

TEST(FileUrl, NamesADirectoryAndItsMode) {
  EXPECT_EQ(parse_location(Url::parse("file:///run/lock/app")).path, "/run/lock/app");
  EXPECT_EQ(parse_location(Url::parse("file:///run/lock/app")).mode, 0700U);
  EXPECT_EQ(parse_location(Url::parse("file://localhost/run/lock")).path, "/run/lock");
  EXPECT_EQ(parse_location(Url::parse("file:///a%20b/%25")).path, "/a b/%");
  EXPECT_EQ(parse_location(Url::parse("file:///d?mode=0770")).mode, 0770U);
  EXPECT_EQ(parse_location(Url::parse("file:///d?mode=2770")).mode, 02770U);
  EXPECT_EQ(parse_location(Url::parse("file:///d?mode=01777")).mode, 01777U);
}

TEST(FileUrl, IsRefusedWithTheWrongPartNamed) {
  const std::vector<std::pair<std::string, std::string>> wrong = {
      {"file://server/share", "server"},
      {"file://localhost:80/d", "localhost"},
      {"file://a,b/d", "host"},
      {"file://me@localhost/d", "user"},
      {"file://me:secret@localhost/d", "user"},
      {"file://", "path"},
      {"file://localhost", "path"},
      {"file:///d?mode=", "mode"},
      {"file:///d?mode=rwx", "mode"},
      {"file:///d?mode=0800", "mode"},
      {"file:///d?mode=-700", "mode"},
      {"file:///d?mode=77777", "mode"},
      {"file:///d?mode=99999999999999999999", "mode"},
      {"file:///d?mode=0077", "mode"},
      {"file:///d?mode=0700%20", "mode"},
      {"file:///d?prefix=x", "prefix"},
      {"file:///d?mode=0700&Mode=0700", "Mode"},
  };
  for (const auto& [url, part] : wrong) {
    const Failure failure = failure_of([&] { (void)parse_location(Url::parse(url)); });
    EXPECT_EQ(failure.code, errc::invalid_argument) << url;
    EXPECT_NE(failure.detail.find(part), std::string::npos) << url << ": " << failure.detail;
    EXPECT_EQ(failure.detail.find("secret"), std::string::npos) << failure.detail;
  }
}

}  // namespace
}  // namespace dlock::file::test
