#include <algorithm>
#include <array>
#include <chrono>
#include <optional>
#include <set>
#include <tuple>
#include <vector>

#include "torture/checker/findings.hpp"

namespace dlock::torture {
namespace {

using std::chrono::nanoseconds;

// A holder or a waiter begins or ends.
struct Change {
  TimePoint at;
  int holders;
  int waiters;
  std::size_t attempt;
};

// If another process surely holds a lock, earlier grants that may not hold it together with that one have ended, even
// if their holders have not noticed. Nothing is known about permits.
std::vector<TimePoint> superseded(const Attempts& attempts, LockKind lock_kind, const LockHistory& lock) {
  std::vector<TimePoint> times(lock.grants.size(), TimePoint::max());
  if (lock_kind == LockKind::semaphore) return times;
  TimePoint next = TimePoint::max();
  TimePoint next_alone = TimePoint::max();
  for (std::size_t i = lock.grants.size(); i-- > 0;) {
    const Attempt& attempt = attempts[lock.grants[i]];
    times[i] = attempt.mode == Mode::shared ? next_alone : next;
    if (!attempts.surely_held(attempt)) continue;
    next = attempts.event(*attempt.granted).at;
    if (attempt.mode == Mode::exclusive) next_alone = next;
  }
  return times;
}

std::vector<Change> changes(const Attempts& attempts, LockKind lock_kind, const LockHistory& lock) {
  std::vector<Change> all;
  all.reserve(2 * (lock.attempts.size() + lock.grants.size()));
  for (const std::size_t index : lock.attempts) {
    const Attempt& attempt = attempts[index];
    all.push_back({.at = attempts.event(attempt.asked).at, .holders = 0, .waiters = 1, .attempt = index});
    if (const TimePoint end = attempts.waited_until(attempt); end != TimePoint::max()) {
      all.push_back({.at = end, .holders = 0, .waiters = -1, .attempt = index});
    }
  }
  const std::vector<TimePoint> no_longer = superseded(attempts, lock_kind, lock);
  for (std::size_t i = 0; i < lock.grants.size(); ++i) {
    const Attempt& attempt = attempts[lock.grants[i]];
    const TimePoint granted = attempts.event(*attempt.granted).at;
    const TimePoint freed = std::max(granted, std::min(attempts.freed(attempt), no_longer[i]));
    all.push_back({.at = granted, .holders = 1, .waiters = 0, .attempt = lock.grants[i]});
    if (freed != TimePoint::max()) all.push_back({.at = freed, .holders = -1, .waiters = 0, .attempt = lock.grants[i]});
  }
  // Grants come before releases: a lock that is handed over at one instant is not free in between.
  std::stable_sort(all.begin(), all.end(), [](const Change& a, const Change& b) {
    return std::tuple(a.at, -a.holders) < std::tuple(b.at, -b.holders);
  });
  return all;
}

// The holders and waiters of a lock at one instant.
class Standing {
 public:
  Standing(const Attempts& attempts, LockKind lock_kind) : attempts_(attempts), lock_kind_(lock_kind) {}

  void apply(const Change& change) {
    const Attempt& attempt = attempts_[change.attempt];
    const bool reads = attempt.mode == Mode::shared;
    if (change.waiters > 0) (reads ? waiting_readers_ : waiting_).insert(change.attempt);
    if (change.waiters < 0) (reads ? waiting_readers_ : waiting_).erase(change.attempt);
    if (change.holders > 0) enter(change.attempt, attempt);
    if (change.holders < 0) leave(change, attempt);
  }

  // Whether there is room for a waiter. A waiting writer keeps readers out.
  [[nodiscard]] bool free_though_wanted() const {
    if (lock_kind_ == LockKind::semaphore) return !waiting_.empty() && holders() < attempts_[*waiting_.begin()].permits;
    if (holders_.empty() && readers_.empty()) return !waiting_.empty() || !waiting_readers_.empty();
    return holders_.empty() && waiting_.empty() && !waiting_readers_.empty();
  }
  // The waiter that requested first.
  [[nodiscard]] std::size_t first_waiter() const {
    if (waiting_.empty()) return *waiting_readers_.begin();
    return waiting_readers_.empty() ? *waiting_.begin() : std::min(*waiting_.begin(), *waiting_readers_.begin());
  }
  // The first waiting writer; nullopt while a writer holds the lock.
  [[nodiscard]] std::optional<std::size_t> first_to_write() const {
    return holders_.empty() && !waiting_.empty() ? std::optional(*waiting_.begin()) : std::nullopt;
  }
  // The readers that hold the lock, in the order of their requests.
  [[nodiscard]] const std::set<std::size_t>& readers() const { return readers_; }

  // Completes a stall that ends now.
  [[nodiscard]] Stall stall(TimePoint from, TimePoint to, std::size_t waiter) const {
    return {.from = from, .to = to, .waiter = waiter, .last = last_, .doubt = std::max(doubts_[0], doubts_[1])};
  }

 private:
  [[nodiscard]] std::size_t holders() const { return holders_.size() + readers_.size(); }

  void enter(std::size_t index, const Attempt& attempt) {
    const bool reads = attempt.mode == Mode::shared;
    (reads ? readers_ : holders_).insert(index);
    if (!attempts_.surely_held(attempt)) return;
    if (lock_kind_ == LockKind::semaphore) {
      const auto sure = std::count_if(holders_.begin(), holders_.end(),
                                      [&](std::size_t each) { return attempts_.surely_held(attempts_[each]); });
      if (static_cast<std::size_t>(sure) >= attempt.permits) doubts_ = {};
      return;
    }
    doubt_of(Mode::exclusive).reset();
    if (!reads) doubt_of(Mode::shared).reset();
  }
  void leave(const Change& change, const Attempt& attempt) {
    (attempt.mode == Mode::shared ? readers_ : holders_).erase(change.attempt);
    last_ = change.attempt;
    if (attempt.released && attempts_.event(*attempt.released).yes) return;
    doubt_of(attempt.mode) = change.at;
  }
  std::optional<TimePoint>& doubt_of(Mode mode) { return doubts_[static_cast<std::size_t>(mode)]; }

  const Attempts& attempts_;
  const LockKind lock_kind_;
  // Acquires, by their indexes: in the order of their requests. Readers are separate.
  std::set<std::size_t> holders_;
  std::set<std::size_t> readers_;
  std::set<std::size_t> waiting_;
  std::set<std::size_t> waiting_readers_;
  std::optional<std::size_t> last_;
  // When the last holder stopped, by its mode, for which the service may still keep the lock. A later holder that could
  // not hold it together with that one proves that the service does not.
  std::array<std::optional<TimePoint>, 2> doubts_{};
};

}  // namespace

std::vector<Stall> stalls(const Attempts& attempts, LockKind lock_kind, const LockHistory& lock) {
  std::vector<Stall> found;
  std::optional<TimePoint> since;
  Standing standing(attempts, lock_kind);
  for (const Change& change : changes(attempts, lock_kind, lock)) {
    const std::optional<Stall> stall =
        since ? std::optional(standing.stall(*since, change.at, standing.first_waiter())) : std::nullopt;
    standing.apply(change);
    const bool still = standing.free_though_wanted();
    if (stall && (!still || change.holders > 0)) {
      found.push_back(*stall);
      since.reset();
    }
    if (still && !since) since = change.at;
  }
  if (since) found.push_back(standing.stall(*since, attempts.end(), standing.first_waiter()));
  return found;
}

std::vector<Stall> overtakings(const Attempts& attempts, const LockHistory& lock, TimePoint sound, nanoseconds grace) {
  std::vector<Stall> found;
  std::optional<Stall> open;
  TimePoint turn = sound;  // since the last writer released or gave up: from then on, writers wait for readers only
  Standing standing(attempts, LockKind::read_write);
  const auto close = [&](TimePoint at) {
    if (open && open->overtaker) {
      Stall stall = standing.stall(open->from, at, open->waiter);
      stall.overtaker = open->overtaker;
      found.push_back(stall);
    }
    open.reset();
  };
  for (const Change& change : changes(attempts, LockKind::read_write, lock)) {
    const Attempt& who = attempts[change.attempt];
    const bool writer = who.mode == Mode::exclusive;
    const bool waited = attempts.event(who.asked).until > attempts.event(who.asked).at;
    if (writer && (change.holders < 0 || (change.waiters < 0 && waited))) turn = std::max(turn, change.at);
    standing.apply(change);
    const auto first = standing.first_to_write();
    if (open && open->waiter != first) close(change.at);
    if (!first) continue;
    // Readers that requested before this limit may have been in line before the writer.
    const TimePoint limit = std::max(turn, attempts.event(attempts[*first].asked).at) + grace;
    const auto& readers = standing.readers();
    if (!readers.empty() && attempts.event(attempts[*readers.begin()].asked).at < limit) {
      close(change.at);
    } else if (!open) {
      open = Stall{.from = change.at, .waiter = *first};
    }
    if (open && !open->overtaker && !readers.empty()) open->overtaker = *readers.begin();
  }
  close(attempts.end());
  return found;
}

}  // namespace dlock::torture
