#include "tests/support/messages/queue_contention.hpp"

#include <algorithm>
#include <tuple>
#include <utility>

namespace dlock::messages {

// --- Cleanups --------------------------------------------------------------------------------------------------------

void Cleanups::start(LockKind kind, const std::string& name, const OwnerId& owner, std::chrono::nanoseconds lease,
                     Stake stake) {
  const TimePoint now = connection_.executor().now();
  start_until(kind, name, owner, stake == Stake::place ? TimePoint::max() : saturating_add(now, lease));
}

void Cleanups::heard_of(LockKind kind, const std::string& name, const OwnerId& owner) {
  if (!kept_.contains(owner)) start_until(kind, name, owner, TimePoint::max());
}

void Cleanups::start_until(LockKind kind, const std::string& name, const OwnerId& owner, TimePoint moot) {
  if (connection_.dead()) return;  // the store has forgotten everything of this client
  const auto [found, fresh] = entries_.try_emplace(owner, connection_.executor());
  Entry& entry = found->second;
  if (!fresh) {
    entry.moot = std::max(entry.moot, moot);
    entry.again = true;  // one that is still to be sent will do
    return;
  }
  entry.kind = kind;
  entry.name = name;
  entry.moot = moot;
  release(owner);
}

void Cleanups::finish(std::function<void()> done) {
  finished_ = std::move(done);
  report_if_finished();
}

void Cleanups::release(const OwnerId& owner) {
  const Clock& clock = connection_.clock();
  Entry& entry = entries_.at(owner);
  entry.again = false;
  connection_.request(
      Operation::release, owner, std::tuple(entry.kind, entry.name, owner),
      [&clock](memory::MemoryStore& store, const auto& what) {
        return store.release(std::get<LockKind>(what), std::get<std::string>(what), std::get<OwnerId>(what), clock);
      },
      [this](const auto& what, const Result<bool>& released) {
        if (released.ok()) {
          confirmed(std::get<OwnerId>(what));
        } else {
          failed(std::get<OwnerId>(what));
        }
      });
}

void Cleanups::confirmed(const OwnerId& owner) {
  if (entries_.at(owner).again) return release(owner);
  forget(owner);
}

void Cleanups::failed(const OwnerId& owner) {
  Entry& entry = entries_.at(owner);
  const TimePoint now = connection_.executor().now();
  if (connection_.dead() || now >= entry.moot) return forget(owner);
  const TimePoint again = saturating_add(now, entry.backoff.next(connection_.executor()));
  entry.timer.arm(std::min(again, entry.moot), [this, owner] { release(owner); });
}

void Cleanups::forget(const OwnerId& owner) {
  entries_.erase(owner);
  report_if_finished();
}

void Cleanups::report_if_finished() {
  if (!finished_ || (!entries_.empty() && !connection_.dead())) return;
  const auto finished = std::exchange(finished_, nullptr);
  finished();
}

// --- QueueClient -----------------------------------------------------------------------------------------------------

std::unique_ptr<Contention> QueueClient::contend(const LockRequest& request, GrantSink& sink) {
  auto contention = std::make_unique<QueueContention>(*this, request, sink);
  contention->ask();
  return contention;
}

void QueueClient::notified(LockKind kind, const std::string& name, const OwnerId& owner,
                           const memory::MemoryStore::Answer& answer) {
  auto* const contention = find(owner);
  if (contention == nullptr) return cleanups_.heard_of(kind, name, owner);
  contention->notified(answer);
}

QueueContention* QueueClient::find(const OwnerId& owner) const {
  const auto found = waiting_.find(owner);
  return found == waiting_.end() ? nullptr : found->second;
}

// --- QueueContention -------------------------------------------------------------------------------------------------

QueueContention::QueueContention(QueueClient& client, const LockRequest& request, GrantSink& sink)
    : client_(client), request_(request), sink_(sink), timer_(client.connection_.executor()) {}

QueueContention::~QueueContention() {
  if (granted_) return;
  client_.waiting_.erase(request_.owner);
  if (!queued_ && under_way_ == 0) return;
  client_.cleanups_.start(request_.kind, request_.name, request_.owner, request_.lease, Cleanups::Stake::place);
}

void QueueContention::ask() {
  ++under_way_;
  Connection& connection = client_.connection_;
  const TimePoint sent = connection.executor().now();
  // From here on the answer may come after this object is gone.
  expects_ = true;
  client_.waiting_.emplace(request_.owner, this);
  connection.request(
      Operation::enqueue, request_.owner, request_,
      [&connection](memory::MemoryStore& store, const LockRequest& request) {
        return store.enqueue(request, connection.notices_for(request), connection.clock());
      },
      [&client = client_, sent](const LockRequest& request, const Result<memory::MemoryStore::Answer>& answer) {
        if (auto* contention = client.find(request.owner)) return contention->answered(sent, answer);
        if (answer.ok()) client.cleanups_.heard_of(request.kind, request.name, request.owner);
      },
      [&client = client_](const LockRequest& request, const memory::MemoryStore::Answer&) {
        if (client.find(request.owner) == nullptr) client.cleanups_.heard_of(request.kind, request.name, request.owner);
      });
}

void QueueContention::answered(TimePoint sent, Result<memory::MemoryStore::Answer> answer) {
  --under_way_;
  if (granted_) return;
  if (!answer.ok()) {
    if (answer.failure().code == errc::ambiguous) queued_ = unanswered_ = true;
    ask_again_at(saturating_add(client_.connection_.executor().now(), backoff_.next(client_.connection_.executor())));
    return sink_.unreachable(answer.failure());
  }
  if (const auto other = answer.value().other_permits; other != 0) return sink_.failed(other_permits(request_, other));
  queued_ = true;
  if (answer.value().granted) return granted(answer.value().token, sent);
  backoff_.reset();
  expects_ = true;
  client_.waiting_.emplace(request_.owner, this);
  if (answer.value().first_in_line) {
    first_in_line(answer.value().lease_ends);
  } else {
    ask_again_at(lost_news_check());
  }
  sink_.busy();
}

void QueueContention::notified(const memory::MemoryStore::Answer& answer) {
  if (!answer.granted) return first_in_line(answer.lease_ends);
  granted(answer.token, answer.lease_ends - request_.lease);
}

void QueueContention::granted(FencingToken token, TimePoint since) {
  const TimePoint valid_until = lease_valid_until(since, request_.lease);
  const TimePoint now = client_.connection_.executor().now();
  // News that are older than the lease they bring are worth nothing. If we still own the lock, asking renews it.
  if (now >= valid_until) return ask_again_at(now);
  granted_ = true;
  timer_.disarm();
  client_.waiting_.erase(request_.owner);
  if (expects_) client_.cleanups_.keep(request_.owner);
  sink_.granted({request_.name, request_.owner, token, valid_until, request_.lease, request_.kind, request_.mode});
}

void QueueContention::first_in_line(TimePoint lease_ends) {
  ask_again_at(std::min(lease_ends, lost_news_check()));
}

void QueueContention::ask_again_at(TimePoint at) {
  timer_.arm(at, [this] { ask(); });
}

// Rarely needed, so rare; at random, so that a long queue does not ask all at once.
TimePoint QueueContention::lost_news_check() {
  Executor& executor = client_.connection_.executor();
  return saturating_add(executor.now(), random_between(std::chrono::seconds(5), std::chrono::seconds(10), executor));
}

}  // namespace dlock::messages
