// The memory store: each row is a script of requests, and the answers and notifications that it leads to.
#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <chrono>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <map>
#include <memory>
#include <optional>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <dlock/clock.hpp>

#include "backends/memory/memory_store.hpp"

namespace dlock::memory {
namespace {

using namespace std::chrono_literals;
using std::chrono::nanoseconds;
using Names = std::vector<std::string>;

// A store, its clock, and its clients. A word of a script is a time that passes ("10s"; "10s-" is a nanosecond less),
// or a verb, the number of an owner, "b" if the owner belongs to the client b, and a lease if it is not 30 s
// ("try2b/5s"):
//
//   try, queue            acquires without and with a place in the queue: "1+" granted, "1-20s" busy for 20 s, "1^20s"
//                         busy and first in the queue, "1x2" refused, because others use two permits
//   read, tryread         the same for a reader; wait, waitread: tries of an owner that will come again
//   renew, release        "1+", or "1-" if the owner does not hold the lock
//   permits2, kill, killwaits     of requests to come; the client b dies, with and without its leases
//   watch1, unwatch1, break, back "changed"; "broken" or "free"; the wall clock is set back by a day
//   residue, size         how many hold the lock or wait; how many names the store remembers
//   inspect               "{free,0}", "{a,20s,1}": the holder whose lease ends last, its end, how many wait; with each
//                         reader ("r30s"), owner of a permit ("x30s") and the number of permits ("of3")
//
// "1!" and "1^": a waiter is notified of its grant, or that it is the first in the queue now.
class Script {
 public:
  explicit Script(LockKind kind) : kind_(kind) {}

  [[nodiscard]] LockRequest request(std::uint64_t owner, nanoseconds lease = 30s) const {
    return {.name = "lock",
            .owner = OwnerId(0, owner),
            .holder = "a",
            .lease = lease,
            .wait = false,
            .kind = kind_,
            .permits = permits_};
  }
  std::string run(std::string_view script) {
    std::istringstream words{std::string(script)};
    for (std::string word; words >> word;) {
      if (std::isdigit(static_cast<unsigned char>(word[0])) != 0) {
        clock.advance(duration(word));
      } else {
        follow(word);
      }
    }
    return std::exchange(log_, {});
  }

  ManualClock clock;
  MemoryStore store;

 private:
  static nanoseconds duration(const std::string& text) {
    std::size_t end = 0;
    const nanoseconds seconds = 1s * std::stoi(text, &end);
    if (text.substr(end) == "ns") return seconds / 1'000'000'000;
    return text.ends_with('-') ? seconds - 1ns : seconds;
  }
  void write(const std::string& what) { log_ += (log_.empty() ? "" : " ") + what; }
  [[nodiscard]] std::string left(TimePoint until) const {
    return std::to_string(std::chrono::duration_cast<std::chrono::seconds>(until - clock.now()).count()) + "s";
  }
  // An owner that is granted again keeps its token; every other token is the greatest so far.
  void check_token(std::uint64_t owner, const MemoryStore::Answer& answer, nanoseconds lease) {
    EXPECT_EQ(answer.lease_ends, saturating_add(clock.now(), lease));
    const auto [mine, is_new] = tokens_.try_emplace(owner, answer.token);
    EXPECT_EQ(mine->second, answer.token);
    if (!is_new) return;
    EXPECT_GT(answer.token, last_token_);
    last_token_ = answer.token;
  }
  [[nodiscard]] MemoryStore::OnAnswer on_answer(std::uint64_t owner, nanoseconds lease) {
    return [this, owner, lease](const MemoryStore::Answer& answer) {
      if (answer.granted) check_token(owner, answer, lease);
      EXPECT_NE(answer.granted, answer.first_in_line);
      write(std::to_string(owner) + (answer.granted ? "!" : "^"));
    };
  }
  void write_answer(const LockRequest& made, const MemoryStore::Answer& answer) {
    const std::uint64_t owner = made.owner.low();
    const std::string text = std::to_string(owner);
    if (answer.granted) check_token(owner, answer, made.lease);
    if (answer.other_permits != 0) return write(text + "x" + std::to_string(answer.other_permits));
    write(text + (answer.granted ? "+" : (answer.first_in_line ? "^" : "-") + left(answer.lease_ends)));
  }
  [[nodiscard]] std::string described(const LockInfo& info) const {
    EXPECT_EQ(info.name, "lock");
    EXPECT_EQ(info.kind, kind_);
    EXPECT_EQ(info.token, last_token_);
    EXPECT_EQ(info.held, info.remaining && !info.holder.empty());
    EXPECT_TRUE(std::ranges::is_sorted(info.holders, {}, &HolderInfo::token));
    std::string text = info.held ? info.holder + "," + left(clock.now() + *info.remaining) : "free";
    for (const HolderInfo& each : info.holders) {
      text += (each.mode == Mode::shared ? ",r" : ",x") + left(clock.now() + each.remaining.value());
    }
    if (info.permits != 0) text += ",of" + std::to_string(info.permits);
    return "{" + text + "," + std::to_string(info.waiters.value()) + "}";
  }
  void follow(const std::string& word) {
    const std::size_t digits = std::min(word.find_first_of("0123456789"), word.size());
    const std::string verb = word.substr(0, digits);
    const std::uint64_t owner = digits == word.size() ? 0 : std::stoull(word.substr(digits));
    const auto slash = word.find('/');
    LockRequest made = request(owner, slash == std::string::npos ? 30s : duration(word.substr(slash + 1)));
    if (word.find('b', digits) != std::string::npos) made.holder = "b";
    if (verb.ends_with("read")) made.mode = Mode::shared;
    made.wait = verb.starts_with("wait");
    const Grant held{
        .name = "lock", .owner = made.owner, .token = {}, .valid_until = {}, .lease = made.lease, .kind = kind_};
    const auto yes = [&](bool is) { write(std::to_string(owner) + (is ? "+" : "-")); };
    const std::map<std::string, std::function<void()>> verbs = {
        {"try", [&] { write_answer(made, store.try_acquire(made, 4s, clock)); }},
        {"queue", [&] { write_answer(made, store.enqueue(made, on_answer(owner, made.lease), clock)); }},
        {"renew", [&] { yes(store.renew(held, clock)); }},
        {"release", [&] { yes(store.release(kind_, "lock", made.owner, clock)); }},
        {"permits", [&] { permits_ = static_cast<std::uint32_t>(owner); }},
        {"kill", [&] { store.kill("b", clock); }},
        {"killwaits", [&] { store.kill("b", clock, false); }},
        {"watch", [&] { watches_[owner] = store.watch(kind_, "lock", [&] { write("changed"); }); }},
        {"unwatch", [&] { store.unwatch(kind_, "lock", watches_.at(owner)); }},
        {"break", [&] { write(store.break_lock(kind_, "lock", clock) ? "broken" : "free"); }},
        {"back", [&] { clock.step_wall(-24h); }},
        {"inspect", [&] { write(described(store.inspect(kind_, "lock", clock))); }},
        {"residue", [&] { write(std::to_string(store.residue("lock", clock, kind_))); }},
        {"size", [&] { write(std::to_string(store.size())); }}};
    const bool tries = verb.starts_with("try") || made.wait;
    verbs.at(tries ? "try" : verb == "read" ? "queue" : verb)();
  }

  const LockKind kind_;
  std::uint32_t permits_ = 1;
  std::string log_;
  std::map<std::uint64_t, FencingToken> tokens_;
  FencingToken last_token_;
  std::map<std::uint64_t, std::uint64_t> watches_;
};

struct Row {
  const char* name;
  const char* script;
  const char* log;
};

void expect(LockKind kind, std::initializer_list<Row> rows) {
  for (const Row& row : rows) EXPECT_EQ(Script(kind).run(row.script), row.log) << row.name << ": " << row.script;
}

// --- Locks -----------------------------------------------------------------------------------------------------------

// Shows: one-holder
TEST(MemoryStore, Lease_EndsOnTimeAndIsNotRevived) {
  expect(LockKind::lock,
         {{"a held lock is busy until the lease ends", "try1 10s try2", "1+ 2-20s"},
          {"on time", "try1 30s- try2 1ns try2", "1+ 2-0s 2+"},
          {"the owner again has a new lease", "try1 10s try1 20s try2", "1+ 1+ 2-10s"},
          {"the owner renews", "try1 20s renew2 renew1 20s try2", "1+ 2- 1+ 2-10s"},
          {"a lease that is over is not renewed", "try1 30s renew1 residue release1", "1+ 1- 0 1-"},
          {"a stale owner does not touch the next one", "try1 30s try2 release1 renew1 renew2", "1+ 2+ 1- 1- 2+"},
          {"each owner releases its own lock", "try1 release2 try2 release1 release1 try2", "1+ 2- 2-30s 1+ 1- 2+"},
          {"a name that nobody used", "renew1 release1 break size", "1- 1- free 0"},
          {"a broken lock", "try1 break renew1 break", "1+ broken 1- free"}});
  Script script(LockKind::lock);
  EXPECT_EQ(script.store.try_acquire(script.request(1, nanoseconds::max()), 0s, script.clock).lease_ends,
            TimePoint::max());
  EXPECT_FALSE(script.store.try_acquire(script.request(2), 0s, script.clock).granted);
}

// Shows: waiters-woken, first-come
TEST(MemoryStore, Queue_IsServedInOrderAndOneWaiterIsNotified) {
  expect(
      LockKind::lock,
      {{"the first in the queue is granted", "try1 queue2 queue3 10s release1 renew2", "1+ 2^30s 3-30s 2! 3^ 1+ 2+"},
       {"in their order", "try1 queue2 queue3 queue4 release1 release2 release3 release4",
        "1+ 2^30s 3-30s 4-30s 2! 3^ 1+ 3! 4^ 2+ 4! 3+ 4+"},
       {"asking again keeps the place", "try1 queue2 queue3 queue2 residue", "1+ 2^30s 3-30s 2^30s 3"},
       {"asking again after the grant", "try1 queue2 release1 queue2", "1+ 2^30s 2! 1+ 2+"},
       {"no try before the queue", "try1 queue2 30s try3", "1+ 2^30s 2! 3-30s"},
       {"the first leaves", "try1 queue2 queue3 release2 release1", "1+ 2^30s 3-30s 3^ 2- 3! 1+"},
       {"the last leaves, which notifies no waiter", "try1 queue2 queue3 release3", "1+ 2^30s 3-30s 3-"},
       {"a lease that ended unnoticed", "try1 queue2/10s queue3 release1 10s renew2", "1+ 2^30s 3-30s 2! 3^ 1+ 3! 2-"},
       {"a dead client leaves nothing", "try1b queue2b queue3 kill residue", "1+ 2^30s 3-30s 3! 1"},
       {"its queue only", "try1b queue2b queue3 killwaits residue", "1+ 2^30s 3-30s 3^ 2"},
       {"its place goes to the next", "try1 queue2b queue3 kill", "1+ 2^30s 3-30s 3^"},
       {"residue is owners and waiters", "residue try1 queue2 residue release2 30s residue", "0 1+ 2^30s 2 2- 0"}});
}

TEST(MemoryStore, Watch_IsNotifiedWhenTheLockIsFree) {
  expect(LockKind::lock, {{"freed", "try1 watch1 release1 release1", "1+ changed 1+ 1-"},
                          {"handed over", "try1 watch1 queue2 release1 break", "1+ 2^30s 2! 1+ changed broken"},
                          {"a lease that ended", "try1 watch1 30s try2", "1+ changed 2+"},
                          {"ended", "try1 watch1 unwatch1 release1", "1+ 1+"}});
  expect(LockKind::election,
         {{"a new leader", "watch1 try1 release1 queue2", "changed 1+ changed 1+ changed 2+"},
          {"a name that was only watched", "watch1 watch2 unwatch1 size unwatch2 size unwatch2", "1 0"},
          {"a dead candidate's value goes, too", "try1b kill residue", "1+ 0"}});
}

// Shows: growing-tokens
TEST(MemoryStore, Token_GrowsWithoutTheClockAndTheName) {
  expect(LockKind::lock, {{"the wall clock goes back", "try1 release1 back try2", "1+ 1+ 2+"}});
  Script script(LockKind::lock);
  EXPECT_EQ(script.run("try1 release1 60s"), "1+ 1+");
  const Forgetting by_name{.name = "lock", .idle = 1min};
  EXPECT_EQ(script.store.forget({.name = "other", .idle = 1min}, script.clock), Names());
  EXPECT_EQ(script.store.forget(by_name, script.clock), Names{"lock"});
  EXPECT_EQ(script.store.forget(by_name, script.clock), Names());
  EXPECT_EQ(script.run("size back try2 release2"), "0 2+ 2+");
  for (std::uint64_t i = 0; i < 5000; ++i) {
    LockRequest other = script.request(i, 1s);
    other.name = "other " + std::to_string(i);
    (void)script.store.try_acquire(other, 0s, script.clock);
    script.clock.advance(1s);
  }
  EXPECT_LT(script.store.size(), 2000U) << "names pile up";
  script.clock.step_wall(-24h);
  EXPECT_EQ(script.run("try3"), "3+");
}

// Shows: growing-tokens
TEST(MemoryStore, Token_GrowsAcrossStoresAndFitsASignedInteger) {
  Script script(LockKind::lock);
  const auto before = script.store.try_acquire(script.request(1), 0s, script.clock).token;
  script.clock.advance(1us);
  MemoryStore another;
  EXPECT_GT(another.try_acquire(script.request(2), 0s, script.clock).token, before);
  script.clock.step_wall(24h * 365 * 230);  // close to the end of system_clock
  EXPECT_LT(MemoryStore().try_acquire(script.request(1), 0s, script.clock).token.value(), std::uint64_t{1} << 63U);
}

TEST(MemoryStore, Forgetting_KeepsNamesInUse) {
  Script script(LockKind::lock);
  const auto forget = [&](nanoseconds idle) { return script.store.forget({.name = {}, .idle = idle}, script.clock); };
  EXPECT_EQ(script.run("try1/3600s queue2 1800s"), "1+ 2^3600s");
  EXPECT_EQ(forget(1min), Names()) << "held";
  EXPECT_EQ(script.run("release1 release2"), "2! 1+ 2+");
  EXPECT_EQ(forget(1min), Names()) << "just taken";
  EXPECT_EQ(script.run("watch1 3600s"), "");
  EXPECT_EQ(forget(1min), Names()) << "watched";
  EXPECT_EQ(script.run("unwatch1"), "");
  EXPECT_EQ(forget(2h), Names()) << "not as old";
  EXPECT_EQ(forget(1h), Names{"lock"});
  EXPECT_EQ(script.run("try3 3600s"), "3+");
  EXPECT_EQ(forget(1min), Names{"lock"}) << "a lease that ended unnoticed";
  for (std::uint64_t i = 0; i < 5000; ++i) {
    LockRequest held = script.request(i);
    held.name = std::to_string(i);
    (void)script.store.try_acquire(held, 0s, script.clock);
  }
  EXPECT_EQ(script.store.size(), 5000U) << "held";
}

TEST(MemoryStore, Inspection_DescribesHoldersAndCreatesNoName) {
  expect(LockKind::lock, {{"unknown, held and free", "inspect size try1 queue2 10s inspect release2 release1 inspect",
                           "{free,0} 0 1+ 2^30s {a,20s,1} 2- 1+ {free,0}"}});
  expect(LockKind::read_write, {{"readers", "read1 read2/50s queue3 inspect", "1+ 2+ 3^30s {a,50s,r30s,r50s,1}"}});
  expect(LockKind::semaphore, {{"permits", "permits3 queue1 inspect", "1+ {a,30s,x30s,of3,0}"}});
  Script script(LockKind::lock);
  EXPECT_TRUE(script.store.list(LockKind::lock, script.clock).empty());
  for (const char* name : {"d", "b", "a", "c"}) {
    LockRequest request = script.request(1, name[0] == 'a' ? 30s : 20s);
    request.name = name;
    (void)script.store.try_acquire(request, 0s, script.clock);
  }
  script.clock.advance(20s);
  std::string names;
  for (const LockInfo& each : script.store.list(LockKind::lock, script.clock)) {
    names += each.name + (each.held ? " held " : " free ");
  }
  EXPECT_EQ(names, "a held b free c free d free ");
  EXPECT_EQ(script.store.residue("a", script.clock, LockKind::read_write), 0U) << "kinds are different locks";
  EXPECT_FALSE(script.store.release(LockKind::read_write, "a", OwnerId(0, 1), script.clock));
  EXPECT_TRUE(script.store.list(LockKind::semaphore, script.clock).empty());
}

// --- Locks with several holders --------------------------------------------------------------------------------------

TEST(MemoryStore, Readers_EnterTogetherButNotPastAWaitingWriter) {
  expect(
      LockKind::read_write,
      {{"a writer is alone", "read1 read2 queue3 release1 release2 queue4 read5", "1+ 2+ 3^30s 1+ 3! 2+ 4^30s 5-30s"},
       {"in one wave", "queue1 read2 read3 read4 queue5 read6 release1 release2 release3 release4 release5",
        "1+ 2^30s 3-30s 4-30s 5-30s 6-30s 2! 3! 4! 5^ 1+ 2+ 3+ 5! 6^ 4+ 6! 5+"},
       {"not past a writer", "read1 queue2 tryread3 read4 release1", "1+ 2^30s 3-30s 4-30s 2! 4^ 1+"},
       {"the writer leaves", "read1 queue2 read3 read4 release2", "1+ 2^30s 3-30s 4-30s 3! 4! 2-"},
       {"the writer's client dies", "read1 queue2b read3 kill", "1+ 2^30s 3-30s 3!"},
       {"one reader's lease ends", "read1 read2 queue3 20s renew1 10s renew2 residue release1",
        "1+ 2+ 3^30s 1+ 2- 2 3! 1+"},
       {"a writer asks again when the first lease ends", "read1 read2/10s queue3", "1+ 2+ 3^10s"},
       {"a reader keeps its token", "read1 read2 queue3 read1", "1+ 2+ 3^30s 1+"},
       {"a broken lock", "read1 read2 queue3 break renew1 renew2", "1+ 2+ 3^30s 3! broken 1- 2-"},
       {"a watch", "read1 read2 watch1 release1 release2", "1+ 2+ changed 1+ changed 2+"}});
}

TEST(MemoryStore, WriterWithoutAPlace_KeepsReadersOutByItsMark) {
  expect(LockKind::read_write,
         {{"until it had its turn", "tryread1 wait2 waitread3 release1 waitread3 wait2 release2 waitread3",
           "1+ 2-30s 3-4s 1+ 3-4s 2+ 2+ 3+"},
          {"not by a try", "tryread1 try2 tryread3", "1+ 2-30s 3+"},
          {"as long as it is renewed", "tryread1 wait2 3s wait2 4s- tryread3 1ns tryread3", "1+ 2-30s 2-27s 3-0s 3+"},
          {"until it gives up", "tryread1 wait2 watch1 release2 tryread3", "1+ 2-30s changed 2- 3+"},
          {"not that of another", "tryread1 wait2 wait3 release3 tryread4", "1+ 2-30s 3-30s 3- 4-4s"}});
}

TEST(MemoryStore, Permits_AreGrantedInOrderAndBelongToTheirHolders) {
  expect(LockKind::semaphore,
         {{"in their order", "permits2 queue1 queue2 queue3 queue4 queue5 try6 release2 release1 residue",
           "1+ 2+ 3^30s 4-30s 5-30s 6-30s 3! 4^ 2+ 4! 5^ 1+ 3"},
          {"a dead holder", "permits2 queue1/10s queue2 queue3 10s renew1 release1 residue", "1+ 2+ 3^10s 3! 1- 1- 2"},
          {"another number is refused in use", "permits2 queue1 permits3 queue2 residue queue1 release1 queue2",
           "1+ 2x2 1 1+ 1+ 2+"},
          {"one is a lock", "queue1 queue2 release1", "1+ 2^30s 2! 1+"}});
}

}  // namespace
}  // namespace dlock::memory
