#include "backends/zookeeper/administration/four_letter.hpp"

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "engine/thread_engine.hpp"
#include "tests/support/scripted_server.hpp"
#include "util/event.hpp"

namespace dlock::zookeeper {

namespace {

using namespace std::chrono_literals;
using test::ScriptedServer;

class FourLetterTest : public testing::Test {
 protected:
  using Answer = Result<std::string>;

  ~FourLetterTest() override { engine_->stop(); }

  // Waits for the answer.
  Answer ask(std::uint16_t port, const std::string& name = "127.0.0.1", std::chrono::nanoseconds limit = 60s) {
    auto answer = std::make_shared<std::optional<Answer>>();
    auto answered = std::make_shared<util::Event>();
    engine_->post([this, port, name, limit, answer, answered] {
      ask_(Host{.name = name, .port = port}, engine_->now() + limit, [answer, answered](Answer got) {
        answer->emplace(std::move(got));
        answered->set();
      });
    });
    EXPECT_TRUE(answered->wait(120s));
    return **answer;
  }

  std::shared_ptr<engine::Engine> engine_ = engine::ThreadEngine::start(boottime_clock(), [] { return 4U; });
  ServerAsker ask_ = ask_over_tcp(*engine_);
};

ScriptedServer::Answer to_srvr(const std::string& received, ScriptedServer::Answer answer) {
  return received == "srvr" ? std::move(answer) : ScriptedServer::Answer{};
}

TEST_F(FourLetterTest, TheAnswerIsEverythingUpToTheEndOfTheConnection) {
  const ScriptedServer server([](const std::string& received) {
    return to_srvr(received, {.bytes = std::string(10000, 'x') + "end", .close = true});
  });
  auto answer = ask(server.port());
  ASSERT_TRUE(answer.ok());
  EXPECT_EQ(answer.value(), std::string(10000, 'x') + "end");
}

TEST_F(FourLetterTest, AServerThatIsNotThereIsNamed) {
  std::uint16_t port = 0;
  {
    const ScriptedServer gone([](const std::string&) { return ScriptedServer::Answer{}; });
    port = gone.port();
  }
  const auto answer = ask(port);
  ASSERT_FALSE(answer.ok());
  EXPECT_EQ(answer.failure().code, errc::unavailable);
  EXPECT_NE(answer.failure().detail.find("127.0.0.1:" + std::to_string(port)), std::string::npos);
}

TEST_F(FourLetterTest, ASilentServerIsGivenUpAtTheDeadline) {
  const ScriptedServer server([](const std::string&) { return ScriptedServer::Answer{}; });
  const auto answer = ask(server.port(), "127.0.0.1", 50ms);
  ASSERT_FALSE(answer.ok());
  EXPECT_NE(answer.failure().detail.find("in time"), std::string::npos);
}

TEST_F(FourLetterTest, AServerThatHangsUpHasNotAnswered) {
  const ScriptedServer server(
      [](const std::string& received) { return to_srvr(received, {.bytes = "", .close = true}); });
  EXPECT_FALSE(ask(server.port()).ok());
}

TEST_F(FourLetterTest, AnAnswerWithoutEndIsGivenUp) {
  const ScriptedServer server(
      [](const std::string& received) { return to_srvr(received, {.repeat = std::string(65536, 'x')}); });
  const auto answer = ask(server.port());
  ASSERT_FALSE(answer.ok());
  EXPECT_NE(answer.failure().detail.find("does not end"), std::string::npos);
}

}  // namespace

}  // namespace dlock::zookeeper
