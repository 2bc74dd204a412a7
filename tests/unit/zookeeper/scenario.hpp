// Scenarios of acquires: scripts that change the ensemble, its answers and its connections, and say what is expected.
//
//   {"Waiter_HolderGone_IsGranted", "", "member h; wait a; a waits; remove h; run; a granted"}
//
// Statements end with `;`. {a|b} and {0..9} are alternatives: the scenario is run with each of them, and the same
// alternatives in one script have the same value. scenario.cpp has a comment for each word.
#pragma once

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
  // Of the URL. A client with it is connected before the script begins.
  const char* query;
  const char* script;
};

[[nodiscard]] inline std::string name_of(const testing::TestParamInfo<Scenario>& info) {
  return info.param.name;
}
void PrintTo(const Scenario& scenario, std::ostream* out);

// Runs all its alternatives.
void run_scenario(const Scenario& scenario);

class ScenarioRun final : public BackendTest {
 public:
  explicit ScenarioRun(std::string query);
  void run(const std::string& script);

 private:
  using Words = std::istringstream;
  // What becomes of a request.
  struct Hook {
    std::string selector;   // of requests
    std::string path = {};  // empty: any
    int skip = 0;
    bool forever = false;
    Fate fate = Fate::answer;
    std::vector<std::string> actions = {};
  };

  void TestBody() override {}
  void connect();
  void execute(const std::string& statement);
  [[nodiscard]] bool act(const std::string& word, Words& words);
  [[nodiscard]] bool expect(const std::string& word, Words& words);
  void expect_of(const std::string& who, Words& words);
  void contend(const std::string& who, Words& words, bool wait, bool runs);
  void put(Words& words);
  void add_hook(Words& words);
  [[nodiscard]] Fate decide(const FakeRequest& request);
  [[nodiscard]] bool matches(const Hook& hook, const FakeRequest& request) const;
  [[nodiscard]] std::string path(const std::string& name) const;
  [[nodiscard]] std::vector<std::string> own() const { return own_nodes(place_, kind_); }
  [[nodiscard]] std::vector<FakeRequest> sent() const;
  [[nodiscard]] std::string marker() const;

  const std::string query_;
  LockKind kind_ = LockKind::lock;
  std::string place_ = parent;
  std::map<std::string, std::string> names_;  // paths
  std::map<std::string, std::unique_ptr<Attempt>> attempts_;
  std::vector<Hook> hooks_;
  std::size_t mark_ = 0;
  std::size_t granted_at_ = 0;
};

}  // namespace dlock::zookeeper
