// Scenarios: scripts that change an ensemble, its answers and its connections, and say what is expected.
//
//   {"Waiter_HolderGone_IsGranted", "", "member h; wait a; a waits; remove h; run; a granted"}
//
// Statements end with `;`. {a|b} and {0..9} are alternatives: the scenario is run with each of them, and the same
// alternatives in one script have the same value. scenario.cpp has a comment for each word, acquire_script.cpp for
// those about acquires.
#pragma once

#include <gtest/gtest.h>

#include <map>
#include <sstream>

#include "backends/zookeeper/nodes/node_name.hpp"
#include "backends/zookeeper/session_locks.hpp"
#include "backends/zookeeper/zookeeper_backend.hpp"
#include "fake_handle.hpp"
#include "tests/support/manual_engine.hpp"
#include "tests/support/recording_host.hpp"

namespace dlock::zookeeper {

using namespace std::chrono_literals;

using test::Attempt;
using test::Wish;

// A backend on a manual engine, with an ensemble that the test plays and a record of all reports.
class BackendTest : public testing::Test {
 protected:
  using Kind = FakeRequest::Kind;
  using Dialling = FakeEnsemble::Dialling;
  using ReleaseStatus = ReleaseOutcome::Status;
  using Names = std::vector<std::string>;
  static constexpr auto parent = "/dlock/lock";

  ~BackendTest() override {
    ensemble.fate = nullptr;  // its captures are destroyed before this
    host.on_extended = nullptr;
  }

  template <class AnyBackend = ZookeeperBackend>
  std::unique_ptr<AnyBackend> make(const std::string& query = {}, const std::string& path = {}) {
    const BackendConfig config{.url = Url::parse("zookeeper://h" + path + (query.empty() ? "" : "?" + query)),
                               .holder = "host:1:test",
                               .lease = 10s,
                               .response_timeout = 2s,
                               .connect_timeout = 5s};
    return std::make_unique<AnyBackend>(host, parse_options(config), config.lease, ensemble.handles(),
                                        [this](const auto&... question) { ask_server(question...); });
  }

  std::unique_ptr<Attempt> start(Backend& of, const Wish& wish) { return test::begin_attempt(of, host, wish); }
  std::unique_ptr<Attempt> contend(Backend& of, const Wish& wish) {
    auto attempt = start(of, wish);
    engine.run();
    return attempt;
  }

  std::unique_ptr<Attempt> contend(Backend& of) { return contend(of, Wish{}); }

  std::optional<ReleaseOutcome> release(Backend& of, const Attempt& attempt) {
    std::optional<ReleaseOutcome> outcome;
    of.release(*attempt.grant, [&](const ReleaseOutcome& o) { outcome = o; });
    engine.run();
    return outcome;
  }

  // The answer to a query, which has arrived when the engine has nothing to do.
  template <class T>
  Result<T> answer_to(const std::function<void(Backend::Handler<T>)>& query) {
    std::optional<Result<T>> answer;
    query([&](Result<T> result) {
      EXPECT_FALSE(answer) << "answered twice";
      answer = std::move(result);
    });
    engine.run();
    return answer.value();
  }

  // "held by HOLDER", "VALUE", the holders, "N permits", "N waiters": what there is of it.
  static std::string shown(const LockInfo& info) {
    std::string text = info.held ? "held by " + info.holder : "free";
    if (!info.value.empty()) text += ", value " + info.value;
    for (const auto& each : info.holders) text += (each.mode == Mode::shared ? ", reader " : ", owner ") + each.holder;
    if (info.permits > 0) text += ", " + std::to_string(info.permits) + " permits";
    if (info.waiters) text += ", " + std::to_string(*info.waiters) + " waiters";
    return text;
  }

  // A node in the queue, made by the session of another client; its path.
  std::string put_node(const std::string& lock, const std::string& marker, const std::string& data = "other:2:x") {
    const std::string uuid = "00000000-0000-4000-8000-00000000000" + std::to_string(++others_ % 10);
    return ensemble.put(lock + "/_c_" + uuid + marker, data, 77, true).path;
  }
  // The nodes of our client in the queue, in order.
  std::vector<std::string> own_nodes(const std::string& lock = parent, LockKind kind = LockKind::lock) const {
    std::vector<std::string> paths;
    for (const std::string& child : ensemble.children(lock)) {
      if (ensemble.data(lock + "/" + child).starts_with("host:1:test")) paths.push_back(lock + "/" + child);
    }
    std::ranges::sort(paths, {}, [&](const std::string& path) {
      return parse_queue_node(Layout::curator, path.substr(lock.size() + 1), kind).sequence;
    });
    return paths;
  }

  void ask_server(const Host& server, TimePoint deadline, const std::function<void(Result<std::string>)>& done) {
    (void)engine.schedule(srvr ? engine.now() : deadline, [this, done, name = server.to_string()] {
      done(srvr ? Result<std::string>(*srvr) : Failure{errc::unavailable, name + ": no answer in time"});
    });
  }

  test::ManualEngine engine;
  test::RecordingHost host{engine};
  FakeEnsemble ensemble{engine};
  std::optional<std::string> srvr;  // the answer of servers to it; nullopt: none
  std::unique_ptr<ZookeeperBackend> backend = make();

 private:
  int others_ = 0;
};

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
