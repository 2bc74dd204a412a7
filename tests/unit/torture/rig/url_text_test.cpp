#include "torture/rig/url_text.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <optional>
#include <string>

#include <dlock/error.hpp>

namespace dlock::rig {
namespace {

TEST(BenchUrlText, IsWhatWasGivenUntilItIsChanged) {
  for (const char* url : {"redis://:secret@db1:7000/3?lease=10s&label=a%20b", "memory://", "file:///run/lock",
                          "zookeeper://a,b:2182/chroot?prefix=%2Fx", "postgresql://u@/db?host=/run/pg"}) {
    EXPECT_EQ(UrlText(url).text(), url);
  }
}

TEST(BenchUrlText, AParameterIsAddedBehindTheOthers) {
  UrlText url("redis://db1/3?lease=10s");
  url.set("strategy", "poll");
  EXPECT_EQ(url.text(), "redis://db1/3?lease=10s&strategy=poll");
}

TEST(BenchUrlText, AParameterIsTheFirstWhereThereIsNone) {
  UrlText url("redis://db1");
  url.set("strategy", "poll");
  EXPECT_EQ(url.text(), "redis://db1?strategy=poll");
}

TEST(BenchUrlText, AParameterIsReplacedInItsPlace) {
  UrlText url("redis://db1?strategy=queue&lease=10s");
  url.set("strategy", "poll");
  EXPECT_EQ(url.text(), "redis://db1?strategy=poll&lease=10s");
}

TEST(BenchUrlText, APasswordIsInTheUrlOrInItsFile) {
  const std::string file = testing::TempDir() + "password_of_url_text";
  std::ofstream(file) << "from the file\r\n";
  EXPECT_EQ(UrlText("redis://:secret@db1").password(), "secret");
  EXPECT_EQ(UrlText("redis://db1?password_file=" + file).password(), "from the file");
  EXPECT_EQ(UrlText("redis://db1?sentinel_password_file=" + file).secret("sentinel_password"), "from the file");
  EXPECT_EQ(UrlText("redis://db1?sentinel_password=s").secret("sentinel_password"), "s");
  EXPECT_EQ(UrlText("redis://db1").password(), std::nullopt);
  std::filesystem::remove(file);
}

TEST(BenchUrlText, AParameterIsReadAsItWasSet) {
  UrlText url("redis://db1");
  url.set("prefix", "a b&c=d%/?");
  EXPECT_EQ(url.parameter("prefix"), "a b&c=d%/?");
  EXPECT_EQ(UrlText(url.text()).parameter("prefix"), "a b&c=d%/?");
}

TEST(BenchUrlText, AParameterThatIsRemovedIsNotThere) {
  UrlText url("redis://db1?strategy=queue&lease=10s");
  url.remove("strategy");
  url.remove("prefix");
  EXPECT_EQ(url.text(), "redis://db1?lease=10s");
  EXPECT_EQ(url.parameter("strategy"), std::nullopt);
}

TEST(BenchUrlText, HostsAreReplacedAndTheUserStays) {
  UrlText url("zookeeper://u:p@a,b:2182/chroot?prefix=/x");
  url.set_hosts("127.0.0.1:1,127.0.0.1:2");
  EXPECT_EQ(url.text(), "zookeeper://u:p@127.0.0.1:1,127.0.0.1:2/chroot?prefix=/x");
}

TEST(BenchUrlText, ThePathIsReplaced) {
  UrlText url("file:///run/lock?mode=0700");
  url.set_path("/run/lock/my locks");
  EXPECT_EQ(url.text(), "file:///run/lock/my%20locks?mode=0700");
}

TEST(BenchUrlText, HostsHaveThePortThatIsUsual) {
  const auto hosts = UrlText("zookeeper://a,[::1]:2182").hosts({.name = "localhost", .port = 2181});
  ASSERT_EQ(hosts.size(), 2U);
  EXPECT_EQ(hosts[0].name, "a");
  EXPECT_EQ(hosts[0].port, 2181);
  EXPECT_EQ(hosts[1].name, "::1");
  EXPECT_EQ(hosts[1].port, 2182);
}

TEST(BenchUrlText, WithoutHostsThereIsTheUsualOne) {
  const auto hosts = UrlText("zookeeper:///chroot").hosts({.name = "localhost", .port = 2181});
  ASSERT_EQ(hosts.size(), 1U);
  EXPECT_EQ(hosts[0].name, "localhost");
}

TEST(BenchUrlText, NoSecretIsShown) {
  UrlText url("redis://u:hunter2@db1?auth=digest:u:hunter2");
  url.set("strategy", "poll");
  EXPECT_EQ(url.shown(), "redis://u:***@db1?auth=***&strategy=poll");
}

TEST(BenchUrlText, WhatIsNoUrlIsRefusedWithoutItsPassword) {
  try {
    UrlText url("redis://u:hunter2@db1:none");
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), errc::invalid_argument);
    EXPECT_EQ(std::string(error.what()).find("hunter2"), std::string::npos);
  }
}

}  // namespace
}  // namespace dlock::rig
