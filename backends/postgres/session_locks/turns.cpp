#include "backends/postgres/session_locks/turns.hpp"

#include <algorithm>
#include <utility>

#include <dlock/duration.hpp>
#include <dlock/spi/backoff.hpp>

namespace dlock::postgres {

using std::chrono::milliseconds;
using std::chrono::nanoseconds;
using std::chrono::seconds;

namespace {

// While others wait for a connection.
constexpr WaitSlices short_slices{.shortest = seconds(1), .longest = seconds(2)};
// Then a slice that has lasted so long was begun when no other waited. Only the end of its connection ends it sooner.
constexpr nanoseconds longest_short_slice = seconds(4);
// How often one of those outside tries: a lone one once or twice a second, all of them together so often at most.
constexpr nanoseconds each_looks = seconds(1);
constexpr nanoseconds one_looks = milliseconds(10);
// For so long, more connections stay free after there were too few.
constexpr nanoseconds remembered = seconds(10);

}  // namespace

Turns::Turns(Executor& executor, std::size_t limit, Spare spare, WaitSlices slices, std::function<std::int64_t()> free)
    : executor_(executor), limit_(limit), spare_(spare), slices_(slices), free_(std::move(free)), timer_(executor) {}

// --- Who may be inside -----------------------------------------------------------------------------------------------

Turns::Spare Turns::spare() const {
  const Spare more = executor_.now() < more_until_ ? more_ : Spare{};
  const std::size_t by_all = std::min(spare_.by_all + more.by_all, limit_ - 1);
  return {.by_all = by_all, .by_others = std::max(by_all, std::min(spare_.by_others + more.by_others, limit_ - 1))};
}

void Turns::spare_more(std::size_t& more) {
  const TimePoint now = executor_.now();
  if (now >= more_until_) more_ = {};
  ++more;
  more_until_ = saturating_add(now, remembered);
}

// Those who are not the first of their lock gain little by being inside.
bool Turns::may_enter(const Line& line) const {
  return free_() > static_cast<std::int64_t>(line.inside.empty() ? spare().by_all : spare().by_others);
}

// No waiter for their lock is inside.
bool Turns::wants_turn() const {
  return std::any_of(lines_outside_.begin(), lines_outside_.end(),
                     [this](const std::string& lock) { return lines_.at(lock).inside.empty(); });
}

void Turns::let_in(Line& line, Waiter& waiter) {
  line.inside.push_back(&waiter);
  Standing& standing = standings_.at(&waiter);
  standing.inside = true;
  standing.since = executor_.now();
  ++inside_;
  if (let_in_told_) let_in_told_();
}

void Turns::put_outside(Line& line, Waiter& waiter, bool in_front) {
  const std::string& lock = standings_.at(&waiter).lock;
  if (line.outside.empty()) {
    lines_outside_.push_back(lock);
  } else if (in_front) {
    // It has just had its turn, and with it the others of its lock.
    lines_outside_.splice(lines_outside_.end(), lines_outside_,
                          std::find(lines_outside_.begin(), lines_outside_.end(), lock));
  }
  line.outside.insert(in_front ? line.outside.begin() : line.outside.end(), &waiter);
  if (!timer_.armed()) look_later();
}

void Turns::send_out(Waiter& waiter) {
  Standing& standing = standings_.at(&waiter);
  Line& line = lines_.at(standing.lock);
  (void)std::erase(line.inside, &waiter);
  standing.inside = false;
  --inside_;
  put_outside(line, waiter, true);
}

Turns::Place Turns::enter(const std::string& lock, Waiter& waiter) {
  Line& line = lines_[lock];
  const auto [found, fresh] = standings_.try_emplace(&waiter, Standing{.lock = lock, .since = executor_.now()});
  if (found->second.inside) return Place::inside;
  if (fresh) {
    if (line.outside.empty() && may_enter(line)) {
      let_in(line, waiter);
      return Place::inside;
    }
    put_outside(line, waiter, false);
    if (line.inside.empty() && line.outside.front() == &waiter) room();
  }
  const bool is_first = line.inside.empty() && line.outside.front() == &waiter;
  return is_first && dispensable() == nullptr ? Place::no_room : Place::behind_others;
}

void Turns::leave(Waiter& waiter) {
  const auto found = standings_.find(&waiter);
  if (found == standings_.end()) return;
  const Standing standing = std::move(found->second);
  standings_.erase(found);
  Line& line = lines_.at(standing.lock);
  if (standing.inside) {
    (void)std::erase(line.inside, &waiter);
    --inside_;
  } else {
    (void)std::erase(line.outside, &waiter);
    if (line.outside.empty()) lines_outside_.remove(standing.lock);
  }
  if (line.inside.empty() && line.outside.empty()) lines_.erase(standing.lock);
  room();
}

// --- Slices ----------------------------------------------------------------------------------------------------------

nanoseconds Turns::slice(Waiter& waiter) {
  if (const auto found = standings_.find(&waiter); found != standings_.end()) found->second.since = executor_.now();
  if (!wants_turn() && free_() >= 0) return random_between(slices_.shortest, slices_.longest, executor_);
  return random_between(std::min(short_slices.shortest, slices_.shortest),
                        std::min(short_slices.longest, slices_.longest), executor_);
}

bool Turns::stays(Waiter& waiter) {
  const auto found = standings_.find(&waiter);
  if (found == standings_.end() || !found->second.inside) return false;
  const std::int64_t free = free_();
  if (free >= 0 && (free > static_cast<std::int64_t>(spare().by_all) || !wants_turn())) return true;
  send_out(waiter);
  room();
  return false;
}

// --- Whose turn it is ------------------------------------------------------------------------------------------------

void Turns::freed(const std::string& lock) {
  const auto found = lines_.find(lock);
  if (found == lines_.end() || !found->second.inside.empty() || found->second.outside.empty()) return;
  found->second.outside.front()->worth_a_try();
}

// As a task of its own, because the code that lets go of a connection is in the middle of something.
void Turns::room() {
  if (lines_outside_.empty() || std::exchange(serving_posted_, true)) return;
  executor_.post(lifetime_.guard([this] {
    serving_posted_ = false;
    serve();
  }));
}

// One after the other: each takes a connection before it is asked whether there is another.
void Turns::serve() {
  while (Waiter* const waiter = let_next_in()) waiter->turn_came();
  // The first waiter of a lock takes the place of one that is not the first.
  if (!wants_turn()) return;
  if (Waiter* const other = dispensable()) {
    spare_more(more_.by_others);
    send_out(*other);
    other->give_way();
  }
}

// Never beside another one of the same lock: over two connections they could arrive at the server in another order.
Turns::Waiter* Turns::let_next_in() {
  const auto at = std::find_if(lines_outside_.begin(), lines_outside_.end(), [this](const std::string& lock) {
    const Line& line = lines_.at(lock);
    return line.inside.empty() && may_enter(line);
  });
  if (at == lines_outside_.end()) return nullptr;
  Line& line = lines_.at(*at);
  Waiter& waiter = *line.outside.front();
  line.outside.pop_front();
  if (line.outside.empty()) lines_outside_.erase(at);
  let_in(line, waiter);
  return &waiter;
}

// The last one of the longest line, if it is not the first, too.
Turns::Waiter* Turns::dispensable() const {
  const Line* longest = nullptr;
  for (const auto& [lock, line] : lines_) {
    if (longest == nullptr || line.inside.size() > longest->inside.size()) longest = &line;
  }
  if (longest == nullptr || longest->inside.size() < 2) return nullptr;
  const auto last = std::find_if(longest->inside.rbegin(), longest->inside.rend(),
                                 [](const Waiter* waiter) { return waiter->has_connection(); });
  return last == longest->inside.rend() ? nullptr : *last;
}

Turns::Waiter* Turns::oldest_inside() const {
  Waiter* oldest = nullptr;
  TimePoint since = TimePoint::max();
  for (const auto& [waiter, standing] : standings_) {
    if (!standing.inside || !waiter->has_connection() || standing.since >= since) continue;
    oldest = waiter;
    since = standing.since;
  }
  return oldest;
}

std::size_t Turns::connected() const {
  return static_cast<std::size_t>(std::count_if(standings_.begin(), standings_.end(), [](const auto& item) {
    return item.second.inside && item.first->has_connection();
  }));
}

std::size_t Turns::outside(const std::string& lock) const {
  const auto found = lines_.find(lock);
  return found == lines_.end() ? 0 : found->second.outside.size();
}

bool Turns::make_room() {
  Waiter* waiter = dispensable();
  if (waiter == nullptr) waiter = oldest_inside();
  if (waiter == nullptr) return false;
  spare_more(more_.by_all);
  send_out(*waiter);
  waiter->give_way();
  return true;
}

// The last one first, because each goes to the front of those outside.
void Turns::end_waits() {
  std::vector<Waiter*> waiters;
  for (const auto& [lock, line] : lines_) waiters.insert(waiters.end(), line.inside.rbegin(), line.inside.rend());
  for (Waiter* const waiter : waiters) {
    if (!waiter->has_connection()) continue;
    send_out(*waiter);
    waiter->give_way();
  }
  room();
}

// --- Those outside ---------------------------------------------------------------------------------------------------

void Turns::look_later() {
  const auto among = static_cast<std::int64_t>(std::max<std::size_t>(lines_outside_.size(), 1));
  const nanoseconds at_most = std::max(one_looks, each_looks / among);
  timer_.arm(saturating_add(executor_.now(), random_between(at_most / 2, at_most, executor_)), [this] { look(); });
}

void Turns::look() {
  room();
  if (lines_outside_.empty()) return;
  look_later();
  if (wants_turn() && free_() <= static_cast<std::int64_t>(spare().by_all)) {
    Waiter* const oldest = oldest_inside();
    if (oldest != nullptr && executor_.now() >= saturating_add(standings_.at(oldest).since, longest_short_slice)) {
      send_out(*oldest);
      oldest->give_way();
    }
  }
  const auto is_outside = [](const auto& item) { return item.second.inside.empty() && !item.second.outside.empty(); };
  const auto after_last = lines_.upper_bound(last_look_);
  auto next = std::find_if(after_last, lines_.end(), is_outside);
  if (next == lines_.end()) next = std::find_if(lines_.begin(), after_last, is_outside);
  if (next == lines_.end() || !is_outside(*next)) return;
  last_look_ = next->first;
  next->second.outside.front()->worth_a_try();
}

}  // namespace dlock::postgres
