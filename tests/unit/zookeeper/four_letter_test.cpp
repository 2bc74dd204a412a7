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
  Answer ask(std::uint16_t port, std::chrono::nanoseconds limit = 60s) {
    auto answer = std::make_shared<std::optional<Answer>>();
    auto answered = std::make_shared<util::Event>();
    engine_->post([this, port, limit, answer, answered] {
      ask_(Host{.name = "127.0.0.1", .port = port}, engine_->now() + limit, [answer, answered](Answer got) {
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

TEST_F(FourLetterTest, Answer_EndsWithTheConnection) {
  struct Row {
    ScriptedServer::Answer answer;  // to srvr
    std::string is;                 // or words of the failure
    std::chrono::nanoseconds limit = 60s;
  };
  const std::string full = std::string(10000, 'x') + "end";
  for (const auto& [answer, is, limit] :
       {Row{{.bytes = full, .close = true}, full}, Row{{.bytes = "", .close = true}, "instead of answering"},
        Row{{.repeat = std::string(65536, 'x')}, "does not end"}, Row{{}, "in time", 50ms}}) {
    const ScriptedServer server(
        [&answer](const std::string& received) { return received == "srvr" ? answer : ScriptedServer::Answer{}; });
    const auto got = ask(server.port(), limit);
    if (got.ok()) {
      EXPECT_EQ(got.value(), is);
    } else {
      EXPECT_NE(got.failure().detail.find(is), std::string::npos) << got.failure().detail;
    }
    EXPECT_EQ(got.ok(), is == full);
  }
}

TEST_F(FourLetterTest, MissingServer_IsNamed) {
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

}  // namespace

}  // namespace dlock::zookeeper
