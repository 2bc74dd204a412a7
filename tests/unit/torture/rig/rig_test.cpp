// Addresses, what listens there, and processes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <optional>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include <dlock/error.hpp>

#include "torture/rig/child_process.hpp"
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
           {"file:///run/lock", nothing, ""},
           {"postgresql://u@/db?host=/run/pg", nothing, ""},
           {"redis://db1/3?lease=10s", poll, "redis://db1/3?lease=10s&strategy=poll"},
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

TEST(UrlTextTest, Parameters_AreReadAndSecretsNotShown) {
  UrlText escaped("zookeeper://a,[::1]:2182");
  escaped.set("prefix", "a b&c=d%/?");
  EXPECT_EQ(UrlText(escaped.text()).parameter("prefix"), "a b&c=d%/?");
  EXPECT_EQ(escaped.parameter("strategy"), std::nullopt);
  const auto hosts = escaped.hosts({.name = "localhost", .port = 2181});
  ASSERT_EQ(hosts.size(), 2U);
  EXPECT_EQ(hosts[0].port, 2181);
  EXPECT_EQ(hosts[1].name, "::1");
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

TEST(ConnectTest, EndpointThatDoesNotAnswer_IsAnError) {
  Listener listener;
  const HostPort endpoint{.name = "localhost", .port = listener.port()};
  EXPECT_THROW((void)ask(endpoint, "mntr", 1ms), std::runtime_error);
  EXPECT_EQ(peer_address(connect_to(endpoint, 60s).get()), "127.0.0.1");
  listener.close();
  EXPECT_THAT(
      [&] { (void)connect_to(endpoint, 60s); },
      testing::ThrowsMessage<std::runtime_error>("localhost:" + std::to_string(endpoint.port) + " cannot be reached"));
}

char state_of(pid_t pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
  std::string text;
  std::getline(file, text);
  return text.at(text.rfind(')') + 2);
}

TEST(ChildProcess, Output_IsAwaitedAndVariablesReplaceOurs) {
  ASSERT_EQ(::setenv("DLOCK_TEST_VARIABLE", "ours", 1), 0);
  ChildProcess child({"sh", "-c", "echo $DLOCK_TEST_VARIABLE; echo two >&2"}, {"DLOCK_TEST_VARIABLE=its own"});
  EXPECT_TRUE(child.wait_for_output("two\n"));
  EXPECT_FALSE(child.wait_for_output("three"));
  EXPECT_EQ(child.wait(), 0);
  EXPECT_EQ(child.output(), "its own\ntwo\n");
  EXPECT_FALSE(child.running());
}

TEST(ChildProcess, Wait_EndsAtTheLimitOrAStop) {
  const ChildProcess child({"sleep", "1000"});
  const auto never = [](const std::string&) { return false; };
  std::stop_source stop;
  stop.request_stop();
  EXPECT_FALSE(child.wait_until(never, std::chrono::hours(1), stop.get_token()));
  EXPECT_FALSE(child.wait_until(never, std::chrono::nanoseconds(1)));
  EXPECT_FALSE(child.output_ended());
}

TEST(ChildProcess, Status_IsThatOfAShell) {
  EXPECT_EQ(ChildProcess({"sh", "-c", "exit 3"}).wait(), 3);
  ChildProcess child({"sh", "-c", "echo up; exec sleep 1000"});
  ASSERT_TRUE(child.wait_for_output("up"));
  EXPECT_TRUE(child.running());
  child.signal(SIGTERM);
  EXPECT_EQ(child.wait(), 128 + SIGTERM);
  EXPECT_THROW(child.signal(SIGTERM), std::logic_error) << "its number may be that of another process now";
  ChildProcess no_program({"/nonexistent/program"});
  EXPECT_TRUE(no_program.wait_for_output("cannot execute"));
  EXPECT_EQ(no_program.wait(), 127);
  EXPECT_EQ(run_command({"echo", "done"}), "done\n");
  EXPECT_THROW((void)run_command({"false"}), std::runtime_error);
}

TEST(ChildProcess, FrozenProcess_IsStoppedAndEndsWithItsObject) {
  pid_t pid = 0;
  {
    const ChildProcess child({"sleep", "1000"});
    pid = child.pid();
    child.freeze();
    EXPECT_EQ(state_of(pid), 'T');
    child.thaw();
    EXPECT_TRUE(child.running());
    child.freeze();
  }
  EXPECT_EQ(::kill(pid, 0), -1);
}

TEST(ChildProcess, EndOfTheStartingThread_KillsTheProcess) {
  std::unique_ptr<ChildProcess> child;
  std::thread([&] {
    child = std::make_unique<ChildProcess>(std::vector<std::string>{"sh", "-c", "echo up; exec sleep 1000"});
    EXPECT_TRUE(child->wait_for_output("up"));
  }).join();
  EXPECT_EQ(child->wait(), 128 + SIGKILL);
}

}  // namespace
}  // namespace dlock::rig
