#include "backends/redis/waiting/queue_client.hpp"

#include <utility>
#include <vector>

#include "backends/redis/requests/keys.hpp"
#include "backends/redis/requests/scripts.hpp"
#include "backends/redis/timing.hpp"

namespace dlock::redis {

// --- QueueClient -----------------------------------------------------------------------------------------------------

QueueClient::QueueClient(Executor& executor, Acquirer& acquirer, ReleasesOfKinds& releases, Subscriber& subscriber,
                         std::string client)
    : executor_(executor),
      acquirer_(acquirer),
      releases_(releases),
      subscriber_(subscriber),
      client_(std::move(client)),
      channel_(client_channel(client_)),
      check_timer_(executor) {}

std::unique_ptr<Contention> QueueClient::contend(const LockRequest& request, GrantSink& sink) {
  auto contention = std::make_unique<QueueContention>(*this, request, sink);
  waiting_.emplace(request.owner, contention.get());
  contention->start();
  return contention;
}

// Whoever writes to our channel without knowing what belongs there is ignored.
void QueueClient::told(std::string_view text) {
  const auto message = wake_up_in(text, client_);
  if (!message) return;
  auto* contention = find(message->owner);
  if (message->free_in) {
    if (contention != nullptr) contention->watch(*message->free_in);
  } else if (contention != nullptr) {
    contention->news();
  } else {
    releases_.heard_of(message->owner);
  }
}

void QueueClient::recovered() {
  for_each([](QueueContention& contention) { (void)contention.recovered(); });
  if (!heard_) check_subscription();
}

bool QueueClient::look() {
  for (const auto& [owner, contention] : waiting_) {
    if (contention->recovered()) return true;
  }
  return false;
}

// Contentions come and go while they are told something.
template <class F>
void QueueClient::for_each(F&& f) {
  std::vector<OwnerId> owners;
  owners.reserve(waiting_.size());
  for (const auto& [owner, contention] : waiting_) owners.push_back(owner);
  for (const OwnerId& owner : owners) {
    if (auto* contention = find(owner)) f(*contention);
  }
}

QueueContention* QueueClient::find(const OwnerId& owner) const {
  const auto found = waiting_.find(owner);
  return found == waiting_.end() ? nullptr : found->second;
}

// --- The subscription ------------------------------------------------------------------------------------------------

namespace {

// Then we are not heard for as long as the connections stand, and poll.
constexpr int most_failed_checks = 5;

}  // namespace

void QueueClient::subscribed() {
  unsubscribed();
  check_subscription();
}

void QueueClient::unsubscribed() {
  ++subscription_;
  heard_ = checking_ = false;
  check_timer_.disarm();
}

void QueueClient::check_subscription() {
  if (checking_ || !subscriber_.hears(channel_)) return;
  checking_ = true;
  // An empty message means nothing to whoever reads it; the server answers how many do.
  (void)acquirer_.commands().request({"PUBLISH", channel_, ""}, acquirer_.deadline(),
                                     [this, about = subscription_](const Result<Reply>& reply, TimePoint) {
                                       if (about == subscription_) checked(reply);
                                     });
}

void QueueClient::checked(const Result<Reply>& reply) {
  checking_ = false;
  const Result<std::uint64_t> count = reply.ok() ? read_number(reply.value()) : reply.failure();
  if (count.ok() && count.value() > 0) {
    failed_checks_ = 0;
    check_backoff_.reset();
    if (!std::exchange(heard_, true)) for_each([](QueueContention& contention) { contention.news(); });
    return;
  }
  heard_ = false;
  // Without the right to publish, nobody can tell.
  if (!count.ok() && count.failure().code == errc::access_denied) return;
  if (++failed_checks_ > most_failed_checks) return;
  const bool elsewhere = count.ok();
  check_timer_.arm(saturating_add(executor_.now(), check_backoff_.next(executor_)), [this, elsewhere] {
    if (!elsewhere) return check_subscription();
    // All connections are made anew, because newer ones lead where those of others lead.
    acquirer_.commands().reconnect(
        {errc::unavailable, acquirer_.commands().options().endpoint() + ": another server than the subscriber's"});
  });
}

// --- QueueContention -------------------------------------------------------------------------------------------------

QueueContention::QueueContention(QueueClient& client, const LockRequest& request, GrantSink& sink)
    : client_(client),
      request_(request),
      sink_(sink),
      machine_([&executor = client.executor_] { return executor.random(); },
               client.acquirer_.commands().options().prefix.empty() && !several_hold(request.space)),
      timer_(client.executor_) {}

QueueContention::~QueueContention() {
  client_.waiting_.erase(request_.owner);
  if (granted_) return;  // the core's business now
  const bool in_flight = machine_.asking() && !client_.acquirer_.withdraw(question_);
  if (!in_flight && !machine_.maybe_known()) return;
  client_.releases_.abandon(request_, machine_.unanswered());
}

void QueueContention::follow(QueueMachine::Step step, const Failure& why, const AcquireAnswer& answer, TimePoint sent) {
  using Report = QueueMachine::Report;
  if (over_) return;
  over_ = granted_ = step.report == Report::granted;
  if (step.report == Report::failed) over_ = true;
  if (over_) {
    timer_.disarm();
    client_.waiting_.erase(request_.owner);
  }
  if (step.ask) {
    timer_.disarm();
    ask();
  }
  if (step.wake) timer_.arm(*step.wake, [this] { follow(machine_.timer()); });
  // Last: a report may lead to anything but our destruction.
  switch (step.report) {
    case Report::none:
      return;
    case Report::granted: {
      const TimePoint valid_until = lease_valid_until(sent, request_.lease);
      return sink_.granted(
          {request_.name, request_.owner, answer.token, valid_until, request_.lease, request_.space, request_.mode});
    }
    case Report::busy:
      return sink_.busy();
    case Report::unreachable:
      return sink_.unreachable(why);
    case Report::failed:
      return sink_.failed(why);
  }
}

void QueueContention::ask() {
  asked_in_ = client_.subscription_;
  claimed_ = ticket_ > 0 && subscription_ != asked_in_ && client_.executor_.now() < ticket_until_;
  const Place place = {.mode = client_.heard() ? AcquireMode::queue : AcquireMode::blind,
                       .ticket = claimed_ ? ticket_ : 0};
  question_ = client_.acquirer_.start(
      request_, place, client_.acquirer_.deadline(),
      [&client = client_, owner = request_.owner](Result<AcquireAnswer> answer, TimePoint sent) {
        if (auto* contention = client.find(owner)) contention->answered(std::move(answer), sent);
      });
}

void QueueContention::news() {
  overlooked_ = false;
  follow(machine_.news());
}

void QueueContention::watch(std::chrono::nanoseconds free_in) {
  overlooked_ = false;
  follow(machine_.watch(free_in, client_.executor_.now()));
}

bool QueueContention::recovered() {
  const QueueMachine::Step step = machine_.recovered();
  follow(step);
  return step.ask;
}

void QueueContention::answered(Result<AcquireAnswer> answer, TimePoint sent) {
  const TimePoint now = client_.executor_.now();
  if (!answer.ok()) return follow(machine_.failed(answer.failure(), now), answer.failure());
  if (!answer.value().granted) client_.subscriber_.subscribe(client_.channel_);
  // We lost our place: perhaps nobody hears us where others publish, or those who release the lock may not.
  if (answer.value().joined && machine_.maybe_known()) {
    if (ticket_ > 0 && !claimed_) overlooked_ = true;
    client_.check_subscription();
  }
  ticket_ = answer.value().ticket;
  ticket_until_ = saturating_add(sent, alive_for);
  subscription_ = asked_in_;
  const bool heard = client_.heard() && !overlooked_;
  follow(machine_.answered(answer.value(), heard, now), {}, answer.value(), sent);
}

}  // namespace dlock::redis
