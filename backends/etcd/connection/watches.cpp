#include "backends/etcd/connection/watches.hpp"

#include <algorithm>
#include <utility>
#include <vector>

namespace dlock::etcd {

namespace {

// Before watches that a member refused are set again.
constexpr std::chrono::milliseconds refusal_pause{500};
// Proxies end a stream if no message came for some seconds or minutes.
constexpr std::chrono::seconds shortest_proxy_limit{2};

}  // namespace

std::unique_ptr<Watches::Interest> Watches::watch(KeyRange range, bool puts, Handler handler) {
  auto interest = std::make_unique<Interest>(*this, std::move(range), puts, std::move(handler));
  set(*interest);
  return interest;
}

void Watches::set(Interest& interest) {
  interests_.erase(interest.id_);
  interest.id_ = ++last_id_;
  interests_.emplace(interest.id_, &interest);
  if (stream_ == 0) {
    stream_ = client_.open_stream(method_watch, *this);
    if (!timer_.armed()) opened_ = client_.executor().now();
  }
  interest.at_server_ = stream_ != 0;  // otherwise client_ready() sets it
  if (stream_ != 0) client_.send(stream_, watch_create(interest.id_, interest.range_, interest.puts_));
}

void Watches::cancel(const Interest& interest) {
  interests_.erase(interest.id_);
  if (interest.at_server_ && stream_ != 0) client_.send(stream_, watch_cancel(interest.id_));
}

void Watches::client_ready() {
  if (!timer_.armed()) set_orphans();
}

void Watches::client_down() {
  timer_.disarm();
  stream_gone();
}

void Watches::stream_gone() {
  stream_ = 0;
  for (const auto& [id, interest] : interests_) interest->at_server_ = false;
}

void Watches::stream_message(std::string_view message) {
  const auto read = read_watch(message);
  if (!read.ok()) return client_.leave_member(read.failure());
  const WatchAnswer& answer = read.value();
  const auto found = interests_.find(answer.id);
  // The refusal of a watch does not name it: its id is -1.
  if (answer.canceled && answer.compacted == 0 && (answer.id < 0 || found != interests_.end())) {
    client_.login_again();  // perhaps the member does not know the stream's token any more
    client_.close_stream(stream_);
    stream_gone();
    return set_orphans_after(refusal_pause);
  }
  if (found == interests_.end()) return;
  if (answer.canceled) {
    found->second->at_server_ = false;
    return set_orphans();
  }
  if (answer.created && std::exchange(found->second->lost_, false)) return notify(answer.id, any_revision);
  if (answer.created || answer.events != 0) notify(answer.id, answer.header.revision);
}

void Watches::stream_ended(const GrpcStatus& status) {
  stream_gone();
  const TimePoint now = client_.executor().now();
  // etcd names its reasons; a proxy may only have found the stream idle.
  const bool was_idle = now >= saturating_add(opened_, shortest_proxy_limit);
  if (was_idle && !status.message.starts_with("etcdserver:")) return set_orphans_after({});
  if (outcome_of(status) == Outcome::unavailable) {
    // If the member ends all streams at once, its calls (a keep-alive, for example) get time to end.
    timer_.arm(std::max(now, saturating_add(opened_, refusal_pause)),
               [this, why = to_failure(status, client_.options().endpoint())] { client_.leave_member(why); });
    return;
  }
  if (outcome_of(status) == Outcome::unauthorized) client_.login_again();
  set_orphans_after(refusal_pause);
}

void Watches::notify(std::int64_t id, std::int64_t revision) {
  const auto found = interests_.find(id);
  if (found == interests_.end()) return;
  const Handler handler = found->second->handler_;  // it may end the watch
  handler(revision);
}

void Watches::set_orphans() {
  std::vector<std::int64_t> ids;
  for (const auto& [id, interest] : interests_) {
    if (!interest->at_server_) ids.push_back(id);
  }
  std::ranges::sort(ids);
  for (std::int64_t& id : ids) {
    Interest& interest = *interests_.at(id);
    const bool once_more = std::exchange(interest.lost_, true);
    set(interest);
    id = once_more ? interest.id_ : 0;
  }
  const Lifetime::Watch life = lifetime_.watch();
  for (const std::int64_t id : ids) {
    if (life.over()) return;
    notify(id, any_revision);
  }
}

void Watches::set_orphans_after(std::chrono::nanoseconds pause) {
  timer_.arm(saturating_add(client_.executor().now(), pause), [this] { set_orphans(); });
}

}  // namespace dlock::etcd
