#include "backends/etcd/connection/watches.hpp"

#include <algorithm>
#include <utility>
#include <vector>

namespace dlock::etcd {

namespace {

// Watches that a member refuses are not asked for again at once.
constexpr std::chrono::milliseconds pause{500};
// Proxies end streams on which nothing has come for so many seconds or minutes.
constexpr std::chrono::seconds lasting{2};

}  // namespace

Watches::Watches(Client& client) : client_(client), timer_(client.executor()) {}

Watches::~Watches() = default;

std::unique_ptr<Watches::Interest> Watches::watch(const KeyRange& range, bool puts, Handler tell) {
  const std::int64_t id = ++last_id_;
  Entry& entry = entries_.emplace(id, Entry{std::move(tell)}).first->second;
  if (stream_ == 0) {
    stream_ = client_.open_stream(method_watch, *this);
    if (!timer_.armed()) opened_ = client_.executor().now();
  }
  if (stream_ != 0) {
    entry.at_server = true;
    client_.send(stream_, watch_create(id, range, puts));
  }
  return std::make_unique<Interest>(*this, id);  // told when there is a connection
}

void Watches::forget(std::int64_t id) {
  const auto entry = entries_.extract(id);
  if (entry && entry.mapped().at_server && stream_ != 0) client_.send(stream_, watch_cancel(id));
}

void Watches::client_ready() {
  if (!timer_.armed()) tell_orphans();
}

void Watches::client_down() {
  stream_ = 0;
  timer_.disarm();
  orphan_all();
}

void Watches::orphan_all() {
  for (auto& [id, entry] : entries_) entry.at_server = false;
}

void Watches::stream_said(std::string_view message) {
  const auto read = read_watch(message);
  if (!read.ok()) return client_.leave_member(read.failure());
  const WatchAnswer& answer = read.value();
  const auto entry = entries_.find(answer.id);
  // Of one that was refused, servers do not say which it is.
  const bool refused = answer.canceled && answer.compacted == 0 && (answer.id < 0 || entry != entries_.end());
  if (refused) {
    // It may be the token of this stream that is not known any more.
    client_.login_again();
    client_.close_stream(std::exchange(stream_, 0));
    orphan_all();
    return timer_.arm(saturating_add(client_.executor().now(), pause), [this] { tell_orphans(); });
  }
  if (entry == entries_.end()) return;
  if (answer.canceled) {
    entry->second.at_server = false;
    return tell(answer.id, News::over);
  }
  if (answer.created) return tell(answer.id, News::standing, answer.header.revision);
  if (answer.events != 0) tell(answer.id, News::event, answer.header.revision);
}

void Watches::stream_ended(const GrpcStatus& status) {
  stream_ = 0;
  orphan_all();
  // etcd has a reason to end a stream; a proxy may only have found it idle.
  const bool lasted = client_.executor().now() >= saturating_add(opened_, lasting);
  if (lasted && !status.message.starts_with("etcdserver:"))
    return timer_.arm(client_.executor().now(), [this] { tell_orphans(); });
  if (trouble_in(status) == Trouble::unavailable) {
    // Not at once if it ends all streams: what else it serves, a keep-alive for one, is to come to its end.
    const TimePoint at = std::max(client_.executor().now(), saturating_add(opened_, pause));
    return timer_.arm(at,
                      [this, why = to_failure(status, client_.options().endpoint())] { client_.leave_member(why); });
  }
  if (trouble_in(status) == Trouble::unauthorized) client_.login_again();
  timer_.arm(saturating_add(client_.executor().now(), pause), [this] { tell_orphans(); });
}

void Watches::tell(std::int64_t id, News news, std::int64_t revision) {
  const auto entry = entries_.find(id);
  if (entry == entries_.end()) return;
  const Handler told = entry->second.tell;  // it may end the watch
  told(news, revision);
}

// Those that there are now: a handler may watch again.
void Watches::tell_orphans() {
  std::vector<std::int64_t> ids;
  for (const auto& [id, entry] : entries_) {
    if (!entry.at_server) ids.push_back(id);
  }
  std::sort(ids.begin(), ids.end());
  const Lifetime::Watch life = lifetime_.watch();
  for (const std::int64_t id : ids) {
    if (life.over()) return;
    tell(id, News::over);
  }
}

}  // namespace dlock::etcd
