// Watches that are shared, and limited to what can be set again.
#include "backends/zookeeper/connection/watches.hpp"

#include <gtest/gtest.h>

#include "scenario.hpp"

namespace dlock::zookeeper {
namespace {

Options some_options() {
  return parse_options({.url = Url::parse("zookeeper://h"),
                        .holder = "host:1:test",
                        .lease = 10s,
                        .response_timeout = 2s,
                        .connect_timeout = 5s});
}

struct WatchesParts {
  test::ManualEngine engine;
  FakeEnsemble ensemble{engine};
  Options options = some_options();
};

// Interests in /n, which have a NAME each. The query has the bytes that may be watched.
class WatchesScript final : private WatchesParts, public Script, private Session::User {
 public:
  explicit WatchesScript(const std::string& most)
      : Script(engine, ensemble), watches_(engine, session_, 0, std::stoul(most)) {
    words_["interest"] = [this](Words& words) {  // NAME [presence|PATH]
      const std::string name = next(words);
      const std::string what = next(words);
      const auto kind = what == "presence" ? Watches::Kind::presence : Watches::Kind::data;
      interests_[name] = watches_.watch(kind, what.starts_with("/") ? what : "/n", [this, name] { ++changes_[name]; });
    };
    words_["ask"] = [this](Words& words) {  // NAME [presence]
      Watches::Interest& interest = *interests_.at(next(words));
      if (next(words) == "presence") return requests_.exists("/n", interest, [](const Outcome&, const Stat&) {});
      requests_.get("/n", &interest, [](const Outcome&, const Handle::Node&) {});
    };
    words_["drop"] = [this](Words& words) { interests_.at(next(words)).reset(); };
    words_["changes"] = [this](Words& words) {  // NAME COUNT
      const std::string name = next(words);
      EXPECT_TRUE(is_in(changes_[name], next(words)));
    };
    words_["bytes"] = [this](Words& words) { EXPECT_TRUE(is_in(watches_.bytes(), next(words))); };
    words_["polls"] = [this](Words& words) { EXPECT_EQ(interests_.at(next(words)), nullptr); };  // NAME
    words_["sets"] = [this](Words& words) { EXPECT_NE(interests_.at(next(words)), nullptr); };
    words_["same"] = [this](Words& words) {  // NAME NAME: one watch in the server
      const auto id = interests_.at(next(words))->id();
      EXPECT_EQ(id, interests_.at(next(words))->id());
    };
    words_["end_all"] = [this](Words&) {
      auto others = std::make_unique<Watches>(engine, session_, 0);
      const auto outlives = others->watch(Watches::Kind::data, "/n", [] { ADD_FAILURE(); });
      others.reset();
    };
    session_.want();
    engine.run();
    (void)ensemble.put("/n");
  }

 private:
  void session_ready(bool /*fresh*/) override {}
  void session_alive(TimePoint) override {}
  void session_suspended(const Failure&) override {}
  void session_lost(const Failure&) override {}

  Session session_{engine, options, ensemble.handles(), *this};
  Requests requests_{session_};
  Watches watches_;
  std::map<std::string, std::size_t> changes_;
  std::map<std::string, std::unique_ptr<Watches::Interest>> interests_;
};

class WatchesScenario : public testing::TestWithParam<Scenario> {};

TEST_P(WatchesScenario, Holds) {
  run_scenario<WatchesScript>(GetParam());
}

constexpr Scenario watches_rows[] = {
    // As long as it stays with the server, it counts.
    {"Watch_IsSharedAndCountsUntilItFires", "160",
     "interest a; ask a; run; interest b; same a b; bytes 6; disconnect; run; reconnect; run; bytes 6; changes a 0; "
     "changes b 0; drop a; bytes 6; remove /n; run; bytes 0; changes a 0; changes b 1"},
    {"InterestLost_IsNotNotified", "160", "interest a; ask a; run; remove /n; drop a; run; changes a 0"},
    {"WatchSetAfterItsInterestWasLost_Counts", "160",
     "interest a; ask a; drop a; run; bytes 6; watches 1; remove /n; run; bytes 0; changes a 0"},
    {"WatchNotSet_DoesNotCount", "160",
     "remove /n; on get {answer|refuse|lose_request}; interest a; {|ask a}; drop a; run; bytes 0"},
    {"WatchOfAMissingNode_FiresAtItsCreation", "160",
     "remove /n; interest a presence; ask a presence; run; changes a 0; bytes 6; put /n; run; changes a 1; bytes 0"},
    // Another's get found the node before it went.
    {"NodeFoundMissing_NotifiesAllItsWatches", "160",
     "interest a; interest b; ask b; run; lose_events; remove /n; ask a; run; changes a 1; changes b 1"},
    {"SessionOver_IsAChangeForEachWatch", "160", "interest a; ask a; run; expire; run; changes a 1; end_all"},
    // Hazard 20.
    {"Watches_AreLimitedToWhatCanBeSetAgain", "20",
     "interest a /aaaaa; sets a; bytes 10; interest b /bbbbb; sets b; bytes 20; interest c /c; polls c; interest d "
     "/aaaaa; sets d"},
};

INSTANTIATE_TEST_SUITE_P(, WatchesScenario, testing::ValuesIn(watches_rows), name_of);

using WatchesTest = BackendTest;

TEST_F(WatchesTest, WaitersAndHoldersWithoutAWatch_Poll) {
  Options options = some_options();
  options.chroot = "/" + std::string(Watches::default_max_bytes / 3, 'x');  // room for two
  backend = std::make_unique<ZookeeperBackend>(host, options, 10s, ensemble.handles(), ServerAsker());
  std::vector<std::unique_ptr<Attempt>> waiters;
  std::vector<std::string> holders;
  for (int i = 0; i < 5; ++i) {
    const std::string name = "l" + std::to_string(i);
    holders.push_back(put_node("/dlock/" + name, "-lock-"));
    waiters.push_back(contend(*backend, {.name = name}));
  }
  EXPECT_LE(ensemble.watches(), 2U);
  for (const std::string& holder : holders) ensemble.remove(holder);
  engine.advance(3s);
  for (const auto& waiter : waiters) EXPECT_TRUE(waiter->grant);
  EXPECT_LE(ensemble.watches(), 2U);
  EXPECT_TRUE(host.losses.empty());
  for (int i = 0; i < 5; ++i) ensemble.remove(own_nodes("/dlock/l" + std::to_string(i)).at(0));
  engine.advance(6s);
  EXPECT_EQ(host.losses.size(), 5U);
}

}  // namespace
}  // namespace dlock::zookeeper
