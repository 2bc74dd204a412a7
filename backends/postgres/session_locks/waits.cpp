#include "backends/postgres/session_locks/waits.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include <dlock/duration.hpp>

namespace dlock::postgres {

using std::chrono::nanoseconds;
using std::chrono::seconds;

namespace {

// While other locks wait for a session.
constexpr WaitSlices short_slices{.shortest = seconds(1), .longest = seconds(2)};
// Then a slice that has lasted so long was begun when no other waited. Only the end of its connection ends it sooner.
constexpr nanoseconds longest_short_slice = seconds(4);
constexpr nanoseconds looks_again = seconds(1);

// One wait in the server is as good as the other.
bool are_alike(const LockRequest& a, const LockRequest& b) {
  return a.mode == b.mode && holder_text(a) == holder_text(b);
}

}  // namespace

// --- Coming and going ------------------------------------------------------------------------------------------------

class Waits::Waiting final : public Watch {
 public:
  Waiting(Waits& waits, std::string lock, std::uint64_t id)
      : waits_(waits), life_(waits.lifetime_.watch()), lock_(std::move(lock)), id_(id) {}
  ~Waiting() override {
    if (!life_.over()) waits_.remove(lock_, id_);
  }

 private:
  Waits& waits_;
  const Lifetime::Watch life_;
  const std::string lock_;
  const std::uint64_t id_;
};

std::unique_ptr<Watch> Waits::watch(const std::string& lock, const LockRequest& request,
                                    std::function<void()> changed) {
  Line& line = lines_[lock];
  const std::uint64_t id = ++last_id_;
  const bool first = line.waiters.empty();
  line.waiters.emplace(id, Waiter{request, std::move(changed)});
  if (first) {
    put_outside(lock, false);
    serve();
  }
  return std::make_unique<Waiting>(*this, lock, id);
}

void Waits::remove(const std::string& lock, std::uint64_t id) {
  const auto found = lines_.find(lock);
  if (found == lines_.end()) return;
  Line& line = found->second;
  const auto waiter = line.waiters.find(id);
  if (waiter == line.waiters.end()) return;
  const bool first = waiter == line.waiters.begin();
  const LockRequest request = std::move(waiter->second.request);
  line.waiters.erase(waiter);
  if (first) head_changed(lock, line, request);
}

void Waits::leave(const std::string& lock, const OwnerId& waiter) {
  const auto found = lines_.find(lock);
  if (found == lines_.end()) return;
  const auto at = std::find_if(found->second.waiters.begin(), found->second.waiters.end(),
                               [&](const auto& item) { return item.second.request.owner == waiter; });
  if (at != found->second.waiters.end()) remove(lock, at->first);
}

void Waits::head_changed(const std::string& lock, Line& line, const LockRequest& before) {
  if (line.waiters.empty()) {
    end(line, !line.has_lock);
    std::erase(outside_, lock);
    lines_.erase(lock);
    return room();
  }
  line.failure.reset();
  if (line.session == nullptr) return;  // and a session comes in its turn
  if (are_alike(before, line.waiters.begin()->second.request)) {
    if (line.has_lock) tell_first(lock);
    return;
  }
  end(line, !line.has_lock);
  put_outside(lock, true);
  room();
}

LockSession* Waits::take(const std::string& lock, const LockRequest& request) {
  const auto found = lines_.find(lock);
  if (found == lines_.end()) return nullptr;
  Line& line = found->second;
  if (!line.has_lock || line.waiters.begin()->second.request.owner != request.owner) return nullptr;
  LockSession* const session = std::exchange(line.session, nullptr);
  line.has_lock = false;
  put_outside(lock, true);
  leave(lock, request.owner);
  room();
  return session;
}

std::optional<Failure> Waits::take_failure(const std::string& lock, const LockRequest& request) {
  const auto found = lines_.find(lock);
  if (found == lines_.end() || found->second.waiters.begin()->second.request.owner != request.owner) return {};
  return std::exchange(found->second.failure, std::nullopt);
}

void Waits::lost(const LockSession& session) {
  for (auto& [lock, line] : lines_) {
    if (line.session != &session || !line.has_lock) continue;
    line.session = nullptr;
    line.has_lock = false;
    put_outside(lock, true);
    return room();
  }
}

void Waits::end(Line& line, bool at_once) {
  LockSession* const session = std::exchange(line.session, nullptr);
  if (session == nullptr) return;
  if (!std::exchange(line.has_lock, false)) --waiting_;
  if (at_once) {
    session->close();
  } else {
    session->clean();
  }
}

// --- Questions -------------------------------------------------------------------------------------------------------

bool Waits::in_server(const std::string& lock) const {
  const auto found = lines_.find(lock);
  if (found == lines_.end() || found->second.session == nullptr) return false;
  return found->second.has_lock || found->second.session->is_ready();
}

bool Waits::has_no_place(const std::string& lock) const {
  const auto found = lines_.find(lock);
  return found != lines_.end() && found->second.session == nullptr;
}

std::size_t Waits::in_client(const std::string& lock) const {
  const auto found = lines_.find(lock);
  if (found == lines_.end()) return 0;
  return found->second.waiters.size() - (in_server(lock) ? 1 : 0);
}

// --- Whose turn it is ------------------------------------------------------------------------------------------------

void Waits::put_outside(const std::string& lock, bool in_front) {
  outside_.insert(in_front ? outside_.begin() : outside_.end(), lock);
}

// As a task of its own, because the code that let go of a session is in the middle of something.
void Waits::room() {
  if (outside_.empty() || std::exchange(serving_posted_, true)) return;
  executor_.post(lifetime_.guard([this] {
    serving_posted_ = false;
    serve();
  }));
}

void Waits::serve() {
  const TimePoint now = executor_.now();
  for (auto at = outside_.begin(); at != outside_.end() && waiting_ < sessions_.most_waits();) {
    Line& line = lines_.at(*at);
    if (line.pauses_until > now) {
      ++at;
      continue;
    }
    LockSession* const session = sessions_.session_for_wait();
    if (session == nullptr) break;
    const std::string lock = *at;
    at = outside_.erase(at);
    line.session = session;
    ++waiting_;
    wait(lock, line);
  }
  arm();
}

void Waits::wait(const std::string& lock, Line& line) {
  const WaitSlices slices = outside_.empty() ? slices_ : short_slices;
  line.is_long = outside_.empty();
  line.since = executor_.now();
  const nanoseconds slice = random_between(slices.shortest, slices.longest, executor_);
  line.session->ask(line.waiters.begin()->second.request, slice,
                    lifetime_.guard([this, lock](const TryAnswer& answer) { answered(lock, answer); }));
  if (begins_) begins_();
}

void Waits::answered(const std::string& lock, const TryAnswer& answer) {
  using Status = TryAnswer::Status;
  Line& line = lines_.at(lock);
  const LockRequest& first = line.waiters.begin()->second.request;
  if (answer.status == Status::granted) {
    line.backoff.reset();
    line.has_lock = true;
    --waiting_;
    if (!sessions_.hand_to_try(first.owner, *line.session)) return tell_first(lock);
    return;
  }
  // A server that says so without having waited would be asked again and again.
  const TimePoint now = executor_.now();
  const bool in_time = answer.status == Status::busy && now >= saturating_add(line.since, short_slices.shortest / 2);
  if (in_time) line.backoff.reset();
  if (in_time && outside_.empty()) return wait(lock, line);
  line.session = nullptr;
  --waiting_;
  if (!in_time) line.pauses_until = saturating_add(now, line.backoff.next(executor_));
  put_outside(lock, false);
  room();
  if (answer.status != Status::failed) return;
  // A try makes missing tables.
  if (answer.remedy != Remedy::set_up) line.failure = answer.why;
  tell_first(lock);
}

void Waits::tell_first(const std::string& lock) {
  executor_.post(lifetime_.guard([this, lock] {
    const auto found = lines_.find(lock);
    if (found == lines_.end()) return;
    const auto changed = found->second.waiters.begin()->second.changed;
    changed();
  }));
}

void Waits::freed(const std::string& lock, bool shared) {
  const auto found = lines_.find(lock);
  if (found == lines_.end()) return;
  if (!shared) {
    if (found->second.session == nullptr) tell_first(lock);
    return;
  }
  std::vector<std::function<void()>> readers;
  for (const auto& [id, waiter] : found->second.waiters) {
    if (waiter.request.mode != Mode::shared) break;
    readers.push_back(waiter.changed);
  }
  executor_.post(lifetime_.guard([this, readers = std::move(readers)] {
    const Lifetime::Watch life = lifetime_.watch();
    for (const auto& changed : readers) {
      if (!life.over()) changed();
    }
  }));
}

// Of those that wait in the server.
std::unordered_map<std::string, Waits::Line>::iterator Waits::oldest() {
  auto oldest = lines_.end();
  for (auto at = lines_.begin(); at != lines_.end(); ++at) {
    if (at->second.session == nullptr || at->second.has_lock) continue;
    if (oldest == lines_.end() || at->second.since < oldest->second.since) oldest = at;
  }
  return oldest;
}

void Waits::cut(const std::string& lock, Line& line, bool in_front) {
  end(line, true);
  put_outside(lock, in_front);
}

bool Waits::make_room() {
  const auto found = oldest();
  if (found == lines_.end()) return false;
  cut(found->first, found->second, true);
  arm();
  return true;
}

void Waits::restart() {
  for (auto& [lock, line] : lines_) {
    if (line.session == nullptr || line.has_lock || !line.session->is_ready()) continue;
    cut(lock, line, false);
  }
  room();
}

// Where a lock waits for a session, and a long slice keeps it.
void Waits::check() {
  const auto found = outside_.empty() ? lines_.end() : oldest();
  if (found != lines_.end() && found->second.is_long &&
      executor_.now() >= saturating_add(found->second.since, longest_short_slice)) {
    cut(found->first, found->second, false);
  }
  serve();
}

void Waits::arm() {
  if (outside_.empty()) return timer_.disarm();
  const TimePoint now = executor_.now();
  TimePoint at = saturating_add(now, looks_again);
  for (const std::string& lock : outside_) {
    const TimePoint pauses_until = lines_.at(lock).pauses_until;
    if (pauses_until > now) at = std::min(at, pauses_until);
  }
  timer_.arm(at, [this] { check(); });
}

}  // namespace dlock::postgres
