// Queries of locks, breaking and forgetting them.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "backend_fixture.hpp"
#include "tests/support/recording_host.hpp"

namespace dlock::zookeeper {

namespace {

constexpr auto all_kinds = {LockKind::lock, LockKind::read_write, LockKind::semaphore, LockKind::election};

// "held by HOLDER", "VALUE", the holders, "N permits", "N waiters": what there is of it.
std::string shown(const LockInfo& info) {
  std::string text = info.held ? "held by " + info.holder : "free";
  if (!info.value.empty()) text += ", value " + info.value;
  for (const auto& each : info.holders) text += (each.mode == Mode::shared ? ", reader " : ", owner ") + each.holder;
  if (info.permits > 0) text += ", " + std::to_string(info.permits) + " permits";
  if (info.waiters) text += ", " + std::to_string(*info.waiters) + " waiters";
  return text;
}

class InspectionTest : public BackendTest {
 protected:
  Result<LockInfo> inspect(LockKind kind = LockKind::lock) {
    return answer_to<LockInfo>([&](auto done) { backend->inspect(kind, "lock", std::move(done)); });
  }
  Result<std::vector<LockInfo>> list(LockKind kind = LockKind::lock) {
    return answer_to<std::vector<LockInfo>>([&](auto done) { backend->list(kind, std::move(done)); });
  }
  Result<bool> break_lock(LockKind kind = LockKind::lock) {
    return answer_to<bool>([&](auto done) { backend->break_lock(kind, "lock", std::move(done)); });
  }
  Result<Names> forget(LockKind kind = LockKind::lock, const std::string& name = "lock") {
    return answer_to<Names>(
        [&](auto done) { backend->forget({.name = name, .idle = 1min, .kind = kind}, std::move(done)); });
  }
  static std::string place(LockKind kind) { return lock_path("/dlock", "lock", kind); }
};

TEST_F(InspectionTest, Queue_IsShownByInspectAndList) {
  struct Row {
    LockKind kind;
    std::vector<std::pair<std::string, std::string>> nodes;  // the end of the name, the data
    std::string is;
    std::size_t newest = 0;  // of the holders
  };
  using enum LockKind;
  const std::string other = "other:2:x";
  const std::vector<Row> rows = {
      {lock, {}, "free, 0 waiters"},
      {lock,
       {{"-lock-", "web-3:4711:billing"}, {"-lock-", other}, {"-lock-", other}},
       "held by web-3:4711:billing, 2 waiters"},
      // Other programs write anything; Curator's Revoker asks a holder to let go.
      {lock, {{"-lock-", std::string("\x00\xff\x12", 3)}}, "held by , 0 waiters"},
      {lock, {{"-lock-", "__REVOKE__"}}, "held by , 0 waiters"},
      {read_write, {}, "free, 0 waiters"},
      {read_write,
       {{"-__READ__", "web-1:1:x"}, {"-__READ__", "web-2:2:x"}, {"-__WRIT__", other}, {"-__READ__", other}},
       "held by web-1:1:x, reader web-1:1:x, reader web-2:2:x, 2 waiters",
       1},
      {read_write, {{"-__WRIT__", other}, {"-__READ__", other}}, "held by other:2:x, owner other:2:x, 1 waiters"},
      {semaphore,
       {{"-permit-of-2-", "web-1:1:x\nheld"}, {"-permit-of-2-", other}, {"-permit-of-2-", other}},
       "held by web-1:1:x, owner web-1:1:x, owner other:2:x, 2 permits, 1 waiters",
       1},
      {election,
       {{"-lock-", "web-1:1:x\n10.0.0.7"}, {"-lock-", other}},
       "held by web-1:1:x, value 10.0.0.7, 1 waiters"},
      {election, {{"-lock-", "theirs"}}, "held by theirs, 0 waiters"},
      {election, {{"-lock-", "\x01\nvalue"}}, "held by , 0 waiters"},
  };
  for (const auto& [kind, nodes, is, newest] : rows) {
    SCOPED_TRACE(is);
    std::vector<std::string> paths;
    for (const auto& [end, data] : nodes) paths.push_back(put_node(place(kind), end, data));
    const LockInfo info = inspect(kind).value();
    EXPECT_EQ(shown(info), is);
    EXPECT_EQ(info.name, "lock");
    EXPECT_EQ(info.kind, kind);
    EXPECT_EQ(info.token.value(),
              nodes.empty() ? 0U : static_cast<std::uint64_t>(ensemble.stat(paths[newest]).created));
    for (const LockKind each : all_kinds) {
      const auto listed = list(each).value();
      ASSERT_EQ(listed.size(), each == kind && !nodes.empty() ? 1U : 0U);
      if (!listed.empty()) {
        EXPECT_EQ(shown(listed[0]), is);
      }
    }
    if (!nodes.empty()) ensemble.remove(place(kind));
  }
}

// Hazard 24.
TEST_F(InspectionTest, Answer_IsNoOlderThanTheQuestion) {
  constexpr std::size_t many = 300;
  for (std::size_t i = 0; i < many; ++i) (void)put_member("/dlock/n" + std::to_string(i));
  (void)inspect();
  (void)put_member();
  const std::vector<std::pair<std::function<void()>, std::size_t>> queries = {
      {[&] { (void)inspect(); }, 4U},  // the heartbeat; the node and its children; the holder's node
      {[&] { EXPECT_EQ(list().value().size(), many + 1); }, 2U + 3 * (many + 1)}};
  for (const auto& [query, requests] : queries) {
    const std::size_t before = ensemble.requests.size();
    const std::size_t heartbeats = ensemble.heartbeats();
    query();
    EXPECT_TRUE(is_heartbeat(ensemble.requests.at(before))) << "a leader that was deposed answers a sync";
    EXPECT_EQ(ensemble.heartbeats(), heartbeats + 1);
    EXPECT_EQ(ensemble.requests.size(), before + requests);
  }
}

TEST_F(InspectionTest, LeaderNotConfirmed_NoAnswerIsGiven) {
  (void)put_member();
  (void)inspect();
  ensemble.fate = [](const FakeRequest& request) { return is_heartbeat(request) ? Fate::lose_answer : Fate::answer; };
  EXPECT_EQ(inspect().failure().code, errc::unavailable);
}

TEST_F(InspectionTest, EphemeralLock_IsShownByEachStrategy) {
  (void)ensemble.put(parent, "web-3:4711:billing", 77);
  for (const std::string query : {"", "strategy=ephemeral"}) {
    backend = make(query);
    EXPECT_EQ(shown(inspect().value()),
              query.empty() ? "held by web-3:4711:billing, 0 waiters" : "held by web-3:4711:billing");
  }
}

TEST_F(InspectionTest, HolderGoneMeanwhile_IsReplacedByTheNext) {
  for (const bool read_write : {false, true}) {
    const LockKind kind = read_write ? LockKind::read_write : LockKind::lock;
    const std::string end = read_write ? "-__READ__" : "-lock-";
    const std::string first = put_node(place(kind), end, "first");
    (void)put_node(place(kind), end, "second");
    ensemble.fate = [&](const FakeRequest& request) {
      if (request.kind == Kind::get && request.path == first) ensemble.remove(first);
      return Fate::answer;
    };
    EXPECT_EQ(shown(inspect(kind).value()),
              read_write ? "held by second, reader second, 0 waiters" : "held by second, 0 waiters");
  }
}

TEST_F(InspectionTest, QueueOfAnotherProgram_IsRefusedAndLeftAlone) {
  for (const char* name : {"/x__lock__", "/leases/_c_1-lease-"}) {
    const std::string theirs = ensemble.put(parent + std::string(name), {}, 77, true).path;
    for (const std::string query : {"", "strategy=sequential-herd"}) {
      backend = make(query);
      EXPECT_EQ(inspect().failure().code, errc::protocol) << name;
      EXPECT_EQ(break_lock().failure().code, errc::protocol);
      EXPECT_TRUE(list().value().empty());
    }
    EXPECT_TRUE(ensemble.exists(theirs));
    ensemble.remove(theirs);
  }
  EXPECT_FALSE(inspect().value().held) << "what a semaphore leaves behind";
  (void)put_member();
  (void)put_member();
  EXPECT_EQ(shown(inspect().value()), "held by other:2:x, 1 waiters");
}

TEST_F(InspectionTest, MissingRights_AreTheAnswer) {
  (void)put_member();
  const std::function<void(Backend::Handler<bool>)> ping = [&](auto done) { backend->ping("lock", std::move(done)); };
  EXPECT_TRUE(answer_to<bool>(ping).value());
  for (const std::string path : {"/dlock", parent}) {
    ensemble.fate = [path](const FakeRequest& request) {
      return request.kind == Kind::children && request.path == path ? Fate::forbid : Fate::answer;
    };
    EXPECT_EQ(answer_to<bool>(ping).failure().code, errc::access_denied) << path;
    EXPECT_EQ(inspect().ok(), path != parent);
  }
}

TEST_F(InspectionTest, Query_EndsAtTheResponseTimeout) {
  ensemble.dialling = Dialling::silence;
  std::vector<std::error_code> codes;
  const auto note = [&](const auto& result) {
    codes.push_back(result.ok() ? std::error_code() : result.failure().code);
  };
  const auto ask = [&](const std::string& name) {
    backend->ping(name, note);
    backend->inspect(LockKind::lock, name, note);
    backend->break_lock(LockKind::lock, name, note);
    backend->forget({.name = name, .idle = 1min}, note);
  };
  backend = make("prefix=");
  ask("zookeeper");
  EXPECT_EQ(std::exchange(codes, {}), std::vector<std::error_code>(4, errc::invalid_argument));
  EXPECT_EQ(contend(*backend, {.name = "zookeeper"})->failure.value().code, errc::invalid_argument);
  ask("lock");
  backend->list(LockKind::lock, note);
  engine.advance(1999ms);
  EXPECT_TRUE(codes.empty());
  engine.advance(1ms);
  EXPECT_EQ(codes, std::vector<std::error_code>(5, errc::unavailable));
  ensemble.dialling = Dialling::accept;
  ensemble.reconnect();
  engine.advance(1s);
  EXPECT_EQ(ensemble.count(Kind::remove), 0U) << "the caller was answered before";
}

TEST_F(InspectionTest, BreakAnsweredAtTheDeadline_RemovesNothingLater) {
  (void)put_member();
  (void)inspect();
  next(Kind::children, Fate::hold_answer);
  std::optional<Result<bool>> broken;
  backend->break_lock(LockKind::lock, "lock", [&](Result<bool> result) { broken = std::move(result); });
  engine.advance(2s);
  EXPECT_EQ(broken.value().failure().code, errc::unavailable);
  ensemble.release_answers();
  engine.run();
  EXPECT_EQ(ensemble.count(Kind::remove), 0U);
}

TEST_F(InspectionTest, List_HasAllLocksAndNothingElse) {
  EXPECT_TRUE(list().value().empty());
  (void)put_member("/dlock/b");
  (void)put_member("/dlock/a%2Fx");
  (void)ensemble.put("/dlock/free");
  (void)ensemble.put("/dlock/single", "me", 77);
  (void)ensemble.put("/dlock/data", "somebody's");
  (void)ensemble.put("/dlock/not%a%name");
  (void)ensemble.put("/dlock/foreign/x__lock__", {}, 77, true);
  (void)ensemble.put("/zookeeper/quota");
  const auto names = [&] {
    std::string all;
    const auto infos = list().value();
    for (const LockInfo& info : infos) all += info.name + (info.held ? "+ " : "- ");
    return all;
  };
  EXPECT_EQ(names(), "a/x+ b+ free- single+ ");
  ensemble.remove("/dlock");
  (void)put_member("/mine");
  backend = make("prefix=");
  EXPECT_EQ(names(), "mine+ ");
}

// --- Breaking and forgetting -----------------------------------------------------------------------------------------

TEST_F(InspectionTest, Break_RemovesTheNodesOfTheHoldersOnly) {
  for (const LockKind kind : all_kinds) EXPECT_FALSE(break_lock(kind).value()) << "it is free";
  const std::string holder = put_member();
  const std::string waiter = put_member();
  const std::string readers[] = {put_node(place(LockKind::read_write), "-__READ__"),
                                 put_node(place(LockKind::read_write), "-__READ__")};
  const std::string writer = put_node(place(LockKind::read_write), "-__WRIT__");
  EXPECT_TRUE(break_lock(LockKind::read_write).value());
  EXPECT_FALSE(ensemble.exists(readers[0]) || ensemble.exists(readers[1]));
  EXPECT_TRUE(ensemble.exists(writer) && ensemble.exists(holder));
  EXPECT_TRUE(break_lock().value());
  EXPECT_FALSE(ensemble.exists(holder));
  EXPECT_TRUE(ensemble.exists(waiter));
  ensemble.remove(parent);
  (void)ensemble.put(parent, "me", 77);
  EXPECT_TRUE(break_lock().value());
  EXPECT_FALSE(ensemble.exists(parent));
}

TEST_F(InspectionTest, BreakCarriedOutInPart_IsAFailure) {
  (void)put_node(place(LockKind::read_write), "-__READ__");
  (void)put_node(place(LockKind::read_write), "-__READ__");
  next(Kind::remove, Fate::forbid);
  EXPECT_EQ(break_lock(LockKind::read_write).failure().code, errc::access_denied);
}

// Between the list and the removal any client may come, in a queue or not, and the node may go.
TEST_F(InspectionTest, ForgetOvertaken_RemovesNoNodeOfAnotherClient) {
  const std::vector<std::function<std::string()>> ways = {[&] { return put_member(); },
                                                          [&] {
                                                            ensemble.remove(parent);
                                                            return ensemble.put(parent, "host:1:x", 77).path;
                                                          },
                                                          [&] {
                                                            ensemble.remove(parent);
                                                            return std::string("/");
                                                          }};
  for (const auto& overtake : ways) {
    ensemble.put(parent);
    std::string node;
    ensemble.fate = [&](const FakeRequest& request) {
      if (request.kind == Kind::remove && request.path == parent && node.empty()) node = overtake();
      return Fate::answer;
    };
    EXPECT_TRUE(forget().value().empty());
    EXPECT_TRUE(!node.empty() && ensemble.exists(node));
    ensemble.remove(parent);
  }
}

TEST_F(InspectionTest, ForgetOfWhatIsNoLock_RemovesNothing) {
  ensemble.put(parent, "somebody's data");
  EXPECT_EQ(forget().failure().code, errc::protocol);
  ensemble.set_data(parent, "");
  ensemble.put(std::string(parent) + "/something");
  EXPECT_EQ(forget().failure().code, errc::protocol);
  EXPECT_TRUE(ensemble.exists(std::string(parent) + "/something"));
}

}  // namespace

}  // namespace dlock::zookeeper
