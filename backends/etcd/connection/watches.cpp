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

std::unique_ptr<Watches::Interest> Watches::watch(const KeyRange& range, bool puts, Handler handler) {
  const std::int64_t id = ++last_id_;
  Entry& entry = entries_.emplace(id, Entry{std::move(handler)}).first->second;
  if (stream_ == 0) {
    stream_ = client_.open_stream(method_watch, *this);
    if (!timer_.armed()) opened_ = client_.executor().now();
  }
  if (stream_ != 0) {
    entry.at_server = true;
    client_.send(stream_, watch_create(id, range, puts));
  }
  return std::make_unique<Interest>(*this, id);  // without a stream, client_ready() notifies it
}

void Watches::cancel(std::int64_t id) {
  const auto entry = entries_.extract(id);
  if (entry && entry.mapped().at_server && stream_ != 0) client_.send(stream_, watch_cancel(id));
}

void Watches::client_ready() {
  if (!timer_.armed()) notify_orphans();
}

void Watches::client_down() {
  timer_.disarm();
  stream_gone();
}

void Watches::stream_gone() {
  stream_ = 0;
  for (auto& [id, entry] : entries_) entry.at_server = false;
}

void Watches::stream_message(std::string_view message) {
  const auto read = read_watch(message);
  if (!read.ok()) return client_.leave_member(read.failure());
  const WatchAnswer& answer = read.value();
  const auto entry = entries_.find(answer.id);
  // The refusal of a watch does not name it: its id is -1.
  if (answer.canceled && answer.compacted == 0 && (answer.id < 0 || entry != entries_.end())) {
    client_.login_again();  // perhaps the member does not know the stream's token any more
    client_.close_stream(stream_);
    stream_gone();
    return notify_orphans_after(refusal_pause);
  }
  if (entry == entries_.end()) return;
  if (answer.canceled) {
    entry->second.at_server = false;
    return notify(answer.id, News::over);
  }
  if (answer.created) return notify(answer.id, News::standing, answer.header.revision);
  if (answer.events != 0) notify(answer.id, News::event, answer.header.revision);
}

void Watches::stream_ended(const GrpcStatus& status) {
  stream_gone();
  const TimePoint now = client_.executor().now();
  // etcd names its reasons; a proxy may only have found the stream idle.
  const bool was_idle = now >= saturating_add(opened_, shortest_proxy_limit);
  if (was_idle && !status.message.starts_with("etcdserver:")) return notify_orphans_after({});
  if (outcome_of(status) == Outcome::unavailable) {
    // If the member ends all streams at once, its calls (a keep-alive, for example) get time to end.
    timer_.arm(std::max(now, saturating_add(opened_, refusal_pause)),
               [this, why = to_failure(status, client_.options().endpoint())] { client_.leave_member(why); });
    return;
  }
  if (outcome_of(status) == Outcome::unauthorized) client_.login_again();
  notify_orphans_after(refusal_pause);
}

void Watches::notify(std::int64_t id, News news, std::int64_t revision) {
  const auto entry = entries_.find(id);
  if (entry == entries_.end()) return;
  const Handler handler = entry->second.handler;  // it may end the watch
  handler(news, revision);
}

void Watches::notify_orphans() {
  std::vector<std::int64_t> ids;  // without those that handlers add
  for (const auto& [id, entry] : entries_) {
    if (!entry.at_server) ids.push_back(id);
  }
  std::ranges::sort(ids);
  const Lifetime::Watch life = lifetime_.watch();
  for (const std::int64_t id : ids) {
    if (life.over()) return;
    notify(id, News::over);
  }
}

void Watches::notify_orphans_after(std::chrono::nanoseconds pause) {
  timer_.arm(saturating_add(client_.executor().now(), pause), [this] { notify_orphans(); });
}

}  // namespace dlock::etcd
