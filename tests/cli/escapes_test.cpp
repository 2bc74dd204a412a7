// Whoever may write into the service may write what a terminal obeys. dlock shows it instead.
#include <nlohmann/json.hpp>

#include "support/cli_test.hpp"
#include "tests/support/redis_server.hpp"

namespace dlock::cli::test {
namespace {

using dlock::test::RedisServer;

class Escapes : public testing::Test {
 protected:
  // As somebody holds a lock who means harm: the owner and the record about him say the same value.
  Escapes() {
    server.command({"SET", "dlock:job", "harm", "PX", "3600000"});
    server.command({"SET", "{dlock:job}:dlf", "17 harm " + holder});
    server.command({"SET", "{dlock:\u202ename}:dlf", "18 harm " + holder});
    server.command({"SET", "dlock:\u202ename", "harm", "PX", "3600000"});
  }
  Finished ask(std::vector<std::string> words) const {
    words.insert(words.begin(), dlock_path());
    return run(words, {.environment = {{"DLOCK_URL", server.url()}}});
  }
  static void expect_harmless(const Finished& finished) {
    const std::string text = finished.out + finished.err;
    EXPECT_EQ(text.find('\033'), std::string::npos) << testing::PrintToString(text);
    EXPECT_EQ(text.find('\a'), std::string::npos) << testing::PrintToString(text);
    EXPECT_EQ(text.find("\u009b"), std::string::npos) << testing::PrintToString(text);
    EXPECT_EQ(text.find("\u202e"), std::string::npos) << testing::PrintToString(text);
  }

  const std::string holder = "host:1:\033]0;owned\a\nstate free\u009b2J";
  RedisServer server;
};

TEST_F(Escapes, StatusShowsThemAsText) {
  const Finished finished = ask({"status", "job"});
  expect_harmless(finished);
  EXPECT_NE(finished.out.find("host:1:\\x1b]0;owned\\x07\\x0astate free\\xc2\\x9b2J\n"), std::string::npos)
      << finished.out;
}

TEST_F(Escapes, ListShowsThemAsText) {
  const Finished finished = ask({"list"});
  expect_harmless(finished);
  EXPECT_NE(finished.out.find("\\xe2\\x80\\xaename"), std::string::npos) << finished.out;
  EXPECT_NE(finished.out.find("owned\\x07"), std::string::npos) << finished.out;
}

TEST_F(Escapes, NamesStayOneALine) {
  const Finished finished = ask({"list", "--names"});
  expect_harmless(finished);
  EXPECT_EQ(finished.out, "job\n\\xe2\\x80\\xaename\n");
}

TEST_F(Escapes, JsonKeepsThemAndEscapesThemItself) {
  const Finished finished = ask({"status", "--json", "job"});
  expect_harmless(finished);
  EXPECT_EQ(nlohmann::json::parse(finished.out)["holder"], holder);
}

}  // namespace
}  // namespace dlock::cli::test
