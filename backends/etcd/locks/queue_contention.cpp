#include "backends/etcd/locks/queue_contention.hpp"

#include <algorithm>
#include <utility>

#include "util/names.hpp"

namespace dlock::etcd {

namespace {

using std::chrono::seconds;

// Servers before 3.4.36 and 3.5.18 may lose an event, so waiters check for missed ones, rarely and at random, so that
// those of a long queue do not check all at once.
constexpr std::chrono::nanoseconds check_min = seconds(20);
constexpr std::chrono::nanoseconds check_max = seconds(40);

}  // namespace

QueueContention::QueueContention(Queue& queue, const LockRequest& request, GrantSink& sink)
    : SessionWaiter(queue, request, sink),
      queue_(queue),
      place_(place_of(queue.client_.options(), request)),
      in_one_request_(!request.wait && place_.capacity == 1) {}

void QueueContention::resume() {
  if (own_.there()) return read_place();
  if (!request().wait && !in_one_request_) return read_queue();
  create_key();
}

void QueueContention::entered(Stage stage) {
  if (stage != Stage::requesting && stage != Stage::waiting) watch_.reset();
}

void QueueContention::give_up() {
  if (!own_.key.empty()) queue_.remove_later(std::exchange(own_, {}), request().owner);
}

// --- Requests --------------------------------------------------------------------------------------------------------

void QueueContention::send(Transaction transaction, bool creates_key, OnAnswer f) {
  start_request();
  queue_.batches_.submit(std::move(transaction), creates_key ? std::string_view(place_.lock) : std::string_view(),
                         queue_.client_.answer_by(),
                         on_answer([this, creates_key, f](const Result<TransactionAnswer>& answer) {
                           if (!answer.ok()) return request_failed(answer.failure(), creates_key);
                           if (creates_key) --own_.unanswered;
                           (this->*f)(answer.value());
                         }));
}

void QueueContention::request_failed(const Failure& why, bool created_key) {
  const bool may_be_carried_out = why.code == errc::ambiguous || why.code == errc::protocol;
  if (created_key && !may_be_carried_out) --own_.unanswered;
  if (why.code == errc::lost) return queue_.session_.expired(queue_.session_.lease());  // which leads to a new session
  failed(why);
}

Read QueueContention::nearest_before(std::size_t limit) const {
  return {.range = place_.before,
          .limit = static_cast<std::int64_t>(limit),
          .order = Order::newest_first,
          .keys_only = true};
}

// --- Getting a place -------------------------------------------------------------------------------------------------

void QueueContention::read_queue() {
  Transaction transaction;
  transaction.read({.range = place_.before, .limit = static_cast<std::int64_t>(place_.capacity), .keys_only = true});
  send(std::move(transaction), false, &QueueContention::queue_read);
}

void QueueContention::queue_read(const TransactionAnswer& answer) {
  if (answer.steps.front().keys.size() >= place_.capacity) return busy();
  create_key();
}

void QueueContention::create_key() {
  if (own_.key.empty()) own_.key = queue_.new_key(place_);
  own_.request = ++queue_.last_request_;
  ++own_.unanswered;
  const KeyRange given_up = gone_since(queue_.client_.options(), queue_.session_.lease(), own_.request);
  Transaction transaction;
  transaction.if_absent({own_.key}).if_absent(given_up);
  for (const KeyRange& each : place_.barred) transaction.if_absent(each);
  if (in_one_request_) transaction.if_absent(place_.before);
  transaction.put(own_.key, request().holder, queue_.session_.lease());
  if (!in_one_request_) {
    // The own key may be among them; one more, as in read_place().
    transaction.read(nearest_before(place_.capacity + 2));
  }
  transaction.else_read({.range = {own_.key}, .keys_only = true});
  transaction.else_read({.range = given_up, .limit = 1, .keys_only = true});
  for (const KeyRange& each : place_.barred) transaction.else_read({.range = each, .limit = 1, .keys_only = true});
  send(std::move(transaction), true, &QueueContention::key_created);
}

void QueueContention::key_created(const TransactionAnswer& answer) {
  if (!answer.held) return key_not_created(answer);
  own_.created = answer.header.revision;
  if (in_one_request_) return grant();
  std::vector<KeyValue> before = answer.steps.back().keys;
  std::erase_if(before, [this](const KeyValue& each) { return each.key == own_.key; });
  judge(before, answer.header.revision);
}

void QueueContention::key_not_created(const TransactionAnswer& answer) {
  if (!answer.steps.front().keys.empty()) {
    own_.created = answer.steps.front().keys.front().created;  // by an earlier, unanswered request
    waited_ = true;
    return read_place();
  }
  if (!answer.steps[1].keys.empty()) return proceed();  // a later request was given up, but not this one
  const auto& options = queue_.client_.options();
  const std::size_t prefix = kind_prefix(options, request().kind).size();
  for (std::size_t i = 2; i < answer.steps.size(); ++i) {
    if (answer.steps[i].keys.empty()) continue;
    const std::string& other = answer.steps[i].keys.front().key;
    const auto parts =
        parse_key(options, request().kind, std::string_view(other).substr(std::min(prefix, other.size())));
    if (parts) return ended(other_permits(request(), parts->permits));
    return ended({errc::protocol, "key " + util::quoted(other) + " does not belong to a semaphore"});
  }
  busy();
}

// --- In the queue ----------------------------------------------------------------------------------------------------

void QueueContention::read_place() {
  if (!may_send()) return;
  Read before = nearest_before(place_.capacity + 1);  // one more, to find out whether it is first in line
  before.created_before = own_.created;
  Transaction transaction;
  transaction.read({.range = {own_.key}, .keys_only = true}).read(before);
  send(std::move(transaction), false, &QueueContention::place_read);
}

void QueueContention::place_read(const TransactionAnswer& answer) {
  const auto& own = answer.steps.front().keys;
  if (own.empty() || own.front().created != own_.created) {
    own_.created = 0;  // it was removed
    return proceed();
  }
  judge(answer.steps.back().keys, answer.header.revision);
}

void QueueContention::judge(const std::vector<KeyValue>& before, std::int64_t revision) {
  if (before.size() < place_.capacity) return waited_ && place_.capacity > 1 ? announce() : grant();
  if (!request().wait) return busy();
  // The first in line for a semaphore gets the permit of any holder.
  const bool any = place_.capacity > 1 && before.size() == place_.capacity;
  read_at_ = revision;
  watch(any ? place_.before : KeyRange{before.front().key});
}

void QueueContention::watch(const KeyRange& range) {
  waited_ = true;
  if (!watch_ || range != watch_->range()) {
    // Of a semaphore: whether the acquire before this one leaves the queue, or gets a permit.
    const bool puts = place_.capacity > 1 && range.end.empty();
    watch_ = queue_.watches_.watch(range, puts, [this](std::int64_t revision) {
      if (revision > read_at_) wake();
    });
  }
  wait(random_between(check_min, check_max, executor()));
}

// Notifies the next waiter, which watches this key, that it is the first in line now.
void QueueContention::announce() {
  Transaction transaction;
  transaction.if_created({own_.key}, own_.created).put(own_.key, request().holder, queue_.session_.lease());
  send(std::move(transaction), false, &QueueContention::announced);
}

void QueueContention::announced(const TransactionAnswer& answer) {
  if (answer.held) return grant();
  own_.created = 0;  // it is gone
  proceed();
}

void QueueContention::grant() {
  auto grant = grant_of(FencingToken(static_cast<std::uint64_t>(own_.created)));
  if (!grant) return;
  queue_.holds_.add(*grant, std::exchange(own_, {}));
  granted(*std::move(grant));
}

}  // namespace dlock::etcd
