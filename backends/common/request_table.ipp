#include <algorithm>
#include <utility>

namespace dlock::common {

template <class Payload>
void RequestTable<Payload>::wait(Entry entry) {
  arm(entry.deadline);
  const Id id = entry.id;
  waiting_.emplace(id, std::move(entry));
}

template <class Payload>
auto RequestTable<Payload>::sent(Entry entry) -> Entry& {
  arm(std::min(entry.deadline, entry.patience));
  return sent_.emplace_back(std::move(entry));
}

template <class Payload>
auto RequestTable<Payload>::take_waiting(std::size_t most) -> std::vector<Entry> {
  std::vector<Entry> out;
  out.reserve(std::min(most, waiting_.size()));
  auto at = waiting_.begin();
  for (; at != waiting_.end() && out.size() < most; ++at) out.push_back(std::move(at->second));
  waiting_.erase(waiting_.begin(), at);
  return out;
}

template <class Payload>
auto RequestTable<Payload>::take_oldest() -> std::optional<Entry> {
  if (sent_.empty()) return std::nullopt;
  std::optional<Entry> entry(std::move(sent_.front()));
  sent_.pop_front();
  return entry;
}

template <class Payload>
auto RequestTable<Payload>::take(Id id) -> std::optional<Entry> {
  const auto found = std::find_if(sent_.begin(), sent_.end(), [id](const Entry& entry) { return entry.id == id; });
  if (found == sent_.end()) return std::nullopt;
  std::optional<Entry> entry(std::move(*found));
  sent_.erase(found);
  return entry;
}

template <class Payload>
auto RequestTable<Payload>::take_sent() -> std::deque<Entry> {
  return std::exchange(sent_, {});
}

template <class Payload>
bool RequestTable<Payload>::withdraw(Id id) {
  if (waiting_.erase(id) != 0) return true;
  const auto found = std::find_if(sent_.begin(), sent_.end(), [id](const Entry& entry) { return entry.id == id; });
  if (found != sent_.end()) found->payload.done = nullptr;
  return false;
}

template <class Payload>
void RequestTable<Payload>::clear() {
  waiting_.clear();
  sent_.clear();
  timer_.disarm();
  armed_for_ = TimePoint::max();
}

// One timer for all requests: it is only moved to an earlier time, and armed again if nothing is overdue then.
template <class Payload>
void RequestTable<Payload>::arm(TimePoint at) {
  if (at >= armed_for_) return;
  armed_for_ = at;
  timer_.arm(at, [this] { check(); });
}

template <class Payload>
void RequestTable<Payload>::check() {
  armed_for_ = TimePoint::max();
  const Lifetime::Watch life = lifetime_.watch();
  const auto is_overdue = [now = executor_.now()](const Entry& entry) {
    return now >= std::min(entry.deadline, entry.patience);
  };
  if (std::any_of(sent_.begin(), sent_.end(), is_overdue)) user_.requests_catch_up();
  if (life.over()) return;
  const TimePoint now = executor_.now();
  TimePoint next = TimePoint::max();
  if (!sent_.empty() && now >= sent_.front().patience) next = user_.requests_unresponsive();
  if (life.over()) return;
  give_up_overdue(now);
  if (life.over()) return;
  if (!sent_.empty() && now < sent_.front().patience) next = std::min(next, sent_.front().patience);
  for (const Entry& entry : sent_) {
    if (entry.payload.done) next = std::min(next, entry.deadline);
  }
  for (const auto& [id, entry] : waiting_) next = std::min(next, entry.deadline);
  arm(next);
}

template <class Payload>
void RequestTable<Payload>::give_up_overdue(TimePoint now) {
  std::vector<Entry> sent;
  for (Entry& entry : sent_) {
    if (!entry.payload.done || now < entry.deadline) continue;
    Entry& given_up = sent.emplace_back();
    given_up.id = entry.id;
    given_up.sent = entry.sent;
    given_up.payload.done = std::exchange(entry.payload.done, nullptr);
  }
  std::vector<Entry> unsent;
  for (auto at = waiting_.begin(); at != waiting_.end();) {
    if (now < at->second.deadline) {
      ++at;
      continue;
    }
    unsent.push_back(std::move(at->second));
    at = waiting_.erase(at);
  }
  if (!sent.empty() || !unsent.empty()) user_.requests_overdue(std::move(sent), std::move(unsent));
}

}  // namespace dlock::common
