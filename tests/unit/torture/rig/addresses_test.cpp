// Addresses: what they are in a URL, and what listens there.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <filesystem>
#include <fstream>
#include <functional>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <dlock/error.hpp>

#include "torture/rig/network.hpp"
#include "torture/rig/socket.hpp"
#include "torture/rig/url_text.hpp"

namespace dlock::rig {
namespace {

using namespace std::chrono_literals;

TEST(UrlTextTest, ChangedUrl_KeepsTheOtherParts) {
  struct Case {
    std::string url;
    std::function<void(UrlText&)> change;
    std::string changed;
  };
  const auto nothing = [](UrlText&) {};
  const auto poll = [](UrlText& url) { url.set("strategy", "poll"); };
  const auto remove = [](UrlText& url) {
    url.remove("strategy");
    url.remove("prefix");
  };
  const auto hosts = [](UrlText& url) { url.set_hosts("127.0.0.1:1,127.0.0.1:2"); };
  const auto path = [](UrlText& url) { url.set_path("/run/lock/my locks"); };
  for (const auto& [before, change, after] : std::vector<Case>{
           {"redis://:secret@db1:7000/3?lease=10s&label=a%20b", nothing, ""},
           {"memory://", nothing, ""},
           {"file:///run/lock", nothing, ""},
           {"zookeeper://a,b:2182/chroot?prefix=%2Fx", nothing, ""},
           {"postgresql://u@/db?host=/run/pg", nothing, ""},
           {"redis://db1/3?lease=10s", poll, "redis://db1/3?lease=10s&strategy=poll"},
           {"redis://db1", poll, "redis://db1?strategy=poll"},
           {"redis://db1?strategy=queue&lease=10s", poll, "redis://db1?strategy=poll&lease=10s"},
           {"redis://db1?strategy=queue&lease=10s", remove, "redis://db1?lease=10s"},
           {"zookeeper://u:p@a,b:2182/chroot?prefix=/x", hosts,
            "zookeeper://u:p@127.0.0.1:1,127.0.0.1:2/chroot?prefix=/x"},
           {"file:///run/lock?mode=0700", path, "file:///run/lock/my%20locks?mode=0700"},
       }) {
    UrlText url(before);
    change(url);
    EXPECT_EQ(url.text(), after.empty() ? before : after);
  }
}

TEST(UrlTextTest, Parameter_IsReadAsItWasSet) {
  UrlText url("redis://db1");
  url.set("prefix", "a b&c=d%/?");
  EXPECT_EQ(url.parameter("prefix"), "a b&c=d%/?");
  EXPECT_EQ(UrlText(url.text()).parameter("prefix"), "a b&c=d%/?");
  EXPECT_EQ(url.parameter("strategy"), std::nullopt);
}

TEST(UrlTextTest, Password_IsInTheUrlOrInItsFile) {
  const std::string file = testing::TempDir() + "password_of_url_text";
  std::ofstream(file) << "from the file\r\n";
  EXPECT_EQ(UrlText("redis://:secret@db1").password(), "secret");
  EXPECT_EQ(UrlText("redis://db1?password_file=" + file).password(), "from the file");
  EXPECT_EQ(UrlText("redis://db1?sentinel_password_file=" + file).secret("sentinel_password"), "from the file");
  EXPECT_EQ(UrlText("redis://db1?sentinel_password=s").secret("sentinel_password"), "s");
  EXPECT_EQ(UrlText("redis://db1").password(), std::nullopt);
  std::filesystem::remove(file);
}

TEST(UrlTextTest, Hosts_HaveDefaults) {
  const auto hosts = [](const std::string& url) {
    std::string text;
    for (const HostPort& host : UrlText(url).hosts({.name = "localhost", .port = 2181})) {
      text += host.name + " " + std::to_string(host.port) + ",";
    }
    return text;
  };
  EXPECT_EQ(hosts("zookeeper://a,[::1]:2182"), "a 2181,::1 2182,");
  EXPECT_EQ(hosts("zookeeper:///chroot"), "localhost 2181,");
}

TEST(UrlTextTest, Secrets_AreNotShown) {
  UrlText url("redis://u:hunter2@db1?auth=digest:u:hunter2");
  url.set("strategy", "poll");
  EXPECT_EQ(url.shown(), "redis://u:***@db1?auth=***&strategy=poll");
  try {
    UrlText refused("redis://u:hunter2@db1:none");
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), errc::invalid_argument);
    EXPECT_THAT(error.what(), testing::Not(testing::HasSubstr("hunter2")));
  }
}

// Answers the first connection with what it was sent, doubled.
void answer_once(const Listener& listener) {
  pollfd source{.fd = listener.fd(), .events = POLLIN, .revents = 0};
  (void)::poll(&source, 1, -1);
  const UniqueFd client = listener.accept();
  source.fd = client.get();
  (void)::poll(&source, 1, -1);
  std::array<char, 64> bytes{};
  const auto n = ::recv(client.get(), bytes.data(), bytes.size(), 0);
  for (int i = 0; i < 2; ++i) (void)!::send(client.get(), bytes.data(), static_cast<std::size_t>(n), MSG_NOSIGNAL);
}

TEST(AskTest, Answer_IsReadToItsEnd) {
  const Listener listener;
  std::jthread server([&] { answer_once(listener); });
  EXPECT_EQ(ask({.name = "localhost", .port = listener.port()}, "mntr", 60s), "mntrmntr");
}

TEST(AskTest, ServerThatDoesNotAnswer_IsGivenUp) {
  Listener listener;
  const HostPort endpoint{.name = "localhost", .port = listener.port()};
  EXPECT_THROW((void)ask(endpoint, "mntr", 1ms), std::runtime_error);
  EXPECT_EQ(peer_address(connect_to(endpoint, 60s).get()), "127.0.0.1");
  listener.close();
  try {
    (void)connect_to(endpoint, 60s);
    FAIL();
  } catch (const std::runtime_error& error) {
    EXPECT_EQ(std::string(error.what()), "localhost:" + std::to_string(endpoint.port) + " cannot be reached");
  }
}

}  // namespace
}  // namespace dlock::rig
