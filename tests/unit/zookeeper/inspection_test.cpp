// Queries of locks: what scenarios cannot say, because it compares kinds, counts or asks for more than one thing.
#include <gtest/gtest.h>

#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "backend_fixture.hpp"

namespace dlock::zookeeper {

namespace {

constexpr auto all_kinds = {LockKind::lock, LockKind::read_write, LockKind::semaphore, LockKind::election};

class InspectionTest : public BackendTest {
 protected:
  Result<LockInfo> inspect(LockKind kind = LockKind::lock) {
    return answer_to<LockInfo>([&](auto done) { backend->inspect(kind, "lock", std::move(done)); });
  }
  Result<std::vector<LockInfo>> list(LockKind kind = LockKind::lock) {
    return answer_to<std::vector<LockInfo>>([&](auto done) { backend->list(kind, std::move(done)); });
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
// Hazard: a server lags behind: an own create or empty write comes first; if old data does no harm, a sync
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

// Hazard: a request is never answered: dlock's own deadlines
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

}  // namespace

}  // namespace dlock::zookeeper
