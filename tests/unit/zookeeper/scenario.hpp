// Scenarios: scripts that change an ensemble, its answers and its connections, and say what is expected.
//
//   {"Waiter_HolderGone_IsGranted", "", "member h; wait a; a waits; remove h; run; a granted"}
//
// Statements end with `;`. {a|b} and {0..9} are alternatives: the scenario is run with each of them, and the same
// alternatives in one script have the same value. scenario.cpp has a comment for each word, acquire_script.cpp for
// those about acquires.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include "backend_fixture.hpp"

namespace dlock::zookeeper {

struct Scenario {
  const char* name;
  // The part of the URL. A client with it is connected before the script begins.
  const char* query;
  const char* script;
};

[[nodiscard]] inline std::string name_of(const testing::TestParamInfo<Scenario>& info) {
  return info.param.name;
}
void PrintTo(const Scenario& scenario, std::ostream* out);

// All alternatives, each after its query and a line feed.
[[nodiscard]] std::vector<std::string> expanded(const Scenario& scenario);

// The words about an ensemble, its answers and time. What is acting on it adds others.
class Script {
 public:
  void run(const std::string& script);

 protected:
  using Words = std::istringstream;

  Script(test::ManualEngine& engine, FakeEnsemble& ensemble, test::RecordingHost* host = nullptr);
  virtual ~Script() = default;
  void execute(const std::string& statement);

  // A path is /PATH or a name given before.
  [[nodiscard]] virtual std::string path(const std::string& name) const {
    return name.starts_with("/") ? name : names_.at(name);
  }
  // Whether it is a request to join a queue.
  [[nodiscard]] virtual bool is_join(const FakeRequest& /*request*/) const { return false; }
  // A word that is not in the table.
  virtual void other(const std::string& word, Words& /*words*/) { ADD_FAILURE() << "unknown word: " << word; }

  [[nodiscard]] static std::string next(Words& words);
  [[nodiscard]] static std::string rest(Words& words);
  [[nodiscard]] static std::optional<std::chrono::milliseconds> duration(const std::string& word);
  // range: "3", or "2-4".
  [[nodiscard]] static testing::AssertionResult is_in(std::size_t count, const std::string& range);
  // CODE [words]
  [[nodiscard]] static testing::AssertionResult is_failure(const Failure& why, Words& words);
  // COUNT [words of the newest]
  static void are_failures(const std::vector<Failure>& all, Words& words);

  std::map<std::string, std::function<void(Words&)>> words_;
  std::map<std::string, std::string> names_;  // paths
  std::size_t mark_ = 0;
  bool is_closed_ = false;

 private:
  // The fate of a request.
  struct Hook {
    std::string selector;   // of requests
    std::string path = {};  // empty: any
    int skip = 0;
    bool forever = false;
    Fate fate = Fate::answer;
    std::vector<std::string> actions = {};
  };

  [[nodiscard]] Hook hook_of(Words& words) const;
  [[nodiscard]] Fate decide(const FakeRequest& request);
  [[nodiscard]] bool matches(const Hook& hook, const FakeRequest& request) const;
  [[nodiscard]] std::vector<FakeRequest> sent() const;
  void add_words();
  void add_expectations();

  test::ManualEngine& engine_;
  FakeEnsemble& ensemble_;
  test::RecordingHost* const host_;  // of acquires
  std::vector<Hook> hooks_;
  int dialled_ = 0;  // before the mark
  int closed_ = 0;
};

// Words about a client. The query is that of its URL.
class BackendScript : public BackendTest, public Script {
 protected:
  explicit BackendScript(std::string query);
  void TestBody() override {}
  // A path may be `place`, or ./CHILD below that.
  [[nodiscard]] std::string path(const std::string& name) const override;

  const std::string query_;
  LockKind kind_ = LockKind::lock;
  std::string place_ = parent;  // of the locks called "lock"
};

// All of its alternatives; `options` come before its query.
template <class Kind>
void run_scenario(const Scenario& scenario, const std::string& options = {}) {
  for (const std::string& each : expanded(scenario)) {
    SCOPED_TRACE(options + each);
    const auto script = each.find('\n');
    Kind(options + each.substr(0, script)).run(each.substr(script + 1));
  }
}

// Of acquires of a client.
void run_scenario(const Scenario& scenario, const std::string& options = {});

}  // namespace dlock::zookeeper
