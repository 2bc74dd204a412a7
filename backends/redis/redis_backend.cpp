#include "backends/redis/redis_backend.hpp"

#include <utility>

#include "backends/redis/administration/diagnosis.hpp"
#include "backends/redis/administration/inspection.hpp"
#include "backends/redis/connection/server_info.hpp"
#include "backends/redis/connection/socket_wire.hpp"
#include "backends/redis/requests/answers.hpp"
#include "backends/redis/requests/keys.hpp"
#include "backends/redis/sentinel/sentinel_findings.hpp"
#include "backends/redis/sentinel/sentinel_wire.hpp"
#include "backends/redis/timing.hpp"
#include "util/names.hpp"

namespace dlock::redis {

namespace {

constexpr std::chrono::milliseconds min_lease{20};
constexpr std::chrono::hours max_lease{24};

TryPolicy policy_of(Strategy strategy) {
  TryPolicy policy;
  if (strategy == Strategy::poll) {
    policy.poll_min = poll_min;
    policy.poll_max = poll_max;
  }
  return policy;
}

// What was refused before it began.
class NoContention final : public Contention {};

}  // namespace

RedisBackend::RedisBackend(BackendHost& host, Options options, WireFactory wires, std::shared_ptr<Sentinels> sentinels)
    : TryBackend(host, policy_of(options.strategy)),
      options_(std::move(options)),
      sentinels_(std::move(sentinels)),
      client_(host.new_owner_id().to_string()),
      wake_ups_(host.executor(), [this](const Failure& why) { subscribe_forbidden(why); }),
      outage_(host.executor(), [this](bool everyone) { outage_over(everyone); }),
      news_(host),
      main_link_(*this, options_.replicas_ack == 0),
      acquiring_link_(*this, true),
      commands_(host.executor(), options_, wires, &main_link_),
      subscriber_(host.executor(), options_, wires, wake_ups_),
      acquirer_(options_.replicas_ack > 0 ? acknowledged_.emplace(host.executor(), options_, wires, &acquiring_link_)
                                          : commands_,
                outage_, client_, sentinels_.get()),
      renewals_(commands_, wires, client_, sentinels_.get()),
      releases_(host.executor(), options_.response_timeout, alive_for,
                [&](Space space) {
                  return release_requests(commands_, acquiring(), outage_, space, client_,
                                          [this] { publish_forbidden(); });
                }),
      queue_(host.executor(), acquirer_, releases_, subscriber_, client_) {
  wake_ups_.connect(subscriber_, queue_);
}

// A server that hangs, and goes on after this client has gone, frees then what nobody has confirmed.
RedisBackend::~RedisBackend() {
  releases_.for_each_unconfirmed([this](Space space, const std::string& name, const OwnerId& owner) {
    release_at_the_end(acquiring(), space, lock_key(options_.prefix, name, space), value_of(client_, owner));
  });
  commands_.stop();
  if (acknowledged_) acknowledged_->stop();
}

Capabilities RedisBackend::capabilities() const noexcept {
  const bool queue = options_.strategy == Strategy::queue;
  return {
      .backend = options_.sentinel ? (options_.tls ? "rediss-sentinel" : "redis-sentinel")
                                   : (options_.tls ? "rediss" : "redis"),
      .strategy = to_string(options_.strategy),
      .scope = Scope::network,
      .lease_kind = LeaseKind::per_lock,
      .fencing = FencingDurability::wall_clock,
      .fair = queue,
      .wakes_waiters = options_.strategy != Strategy::poll,
      .wakes_one = queue,
      .counts_waiters = queue,
      .read_write_locks = options_.strategy != Strategy::broadcast,
      .semaphores = options_.strategy != Strategy::broadcast,
      .elections = true,
      .can_inspect = true,
      .can_list = true,
      .can_break = true,
      .can_forget = true,
      .can_forget_idle = true,
      .min_lease = min_lease,
      .max_lease = max_lease,
  };
}

// --- Locks -----------------------------------------------------------------------------------------------------------

std::optional<Failure> RedisBackend::problem_with(Space space, const std::string& name) const {
  if (!is_reserved(prefix_of(options_.prefix, space), name)) return std::nullopt;
  return Failure{errc::invalid_argument,
                 "lock name " + util::quoted(name) + ": with this prefix, that is a key beside another lock's"};
}

std::unique_ptr<Contention> RedisBackend::contend(const LockRequest& request, GrantSink& sink) {
  if (auto problem = problem_with(request.space, request.name)) {
    sink.failed(*std::move(problem));
    return std::make_unique<NoContention>();
  }
  if (options_.strategy == Strategy::queue && request.wait) return queue_.contend(request, sink);
  return TryBackend::contend(request, sink);
}

void RedisBackend::try_acquire(const LockRequest& request, TryHandler done) {
  try_until(acquirer_.deadline(), request, std::move(done));
}

void RedisBackend::try_until(TimePoint deadline, const LockRequest& request, TryHandler done) {
  const bool marks = request.wait && request.space == Space::read_write && request.mode == Mode::exclusive;
  (void)acquirer_.start(
      request, {.mode = marks ? AcquireMode::mark : AcquireMode::try_once}, deadline,
      [this, deadline, request, done = std::move(done)](Result<AcquireAnswer> answer, TimePoint sent) {
        using Status = TryOutcome::Status;
        if (!answer.ok()) {
          // A reply that makes no sense says nothing about what was done; such a try is not repeated.
          if (answer.failure().code == errc::protocol) abandon(request);
          return done({.status = Status::failed, .failure = answer.failure()});
        }
        const AcquireAnswer& said = answer.value();
        if (said.more && host().executor().now() < deadline) return try_until(deadline, request, done);
        if (!said.granted) return done({.status = Status::busy, .retry_after = said.free_in});
        const TimePoint valid_until = lease_valid_until(sent, request.lease);
        done({.status = Status::granted,
              .grant = {request.name, request.owner, said.token, valid_until, request.lease, request.space,
                        request.mode}});
      });
}

std::unique_ptr<Watch> RedisBackend::watch(Space space, const std::string& name, std::function<void()> changed) {
  if (options_.strategy == Strategy::poll || subscriber_.is_forbidden()) return nullptr;
  return wake_ups_.watch(lock_key(options_.prefix, name, space), std::move(changed));
}

void RedisBackend::abandon(const LockRequest& request) {
  releases_.abandon(request, true);
}

void RedisBackend::renew(const Grant& grant, RenewHandler done) {
  renewals_.renew(grant, std::move(done));
}

void RedisBackend::release(const Grant& grant, ReleaseHandler done) {
  if (sentinels_) sentinels_->done_with(grant.owner);
  releases_.of(grant.space).release(grant, std::move(done));
}

// --- Questions and administration ------------------------------------------------------------------------------------

void RedisBackend::inspect(Space space, const std::string& name, Handler<LockInfo> done) {
  if (auto problem = problem_with(space, name)) return done(*std::move(problem));
  redis::inspect(commands_, space, name, std::move(done));
}

void RedisBackend::list(Space space, Handler<std::vector<LockInfo>> done) {
  redis::list(commands_, space, std::move(done));
}

void RedisBackend::break_lock(Space space, const std::string& name, Handler<bool> done) {
  if (auto problem = problem_with(space, name)) return done(*std::move(problem));
  redis::break_lock(commands_, space, name, std::move(done));
}

void RedisBackend::forget(const Forgetting& what, Handler<std::vector<std::string>> done) {
  if (auto problem = problem_with(what.space, what.name)) return done(*std::move(problem));
  redis::forget(commands_, what, std::move(done));
}

void RedisBackend::diagnose(Handler<std::vector<Finding>> done) {
  if (sentinels_) return redis::diagnose(commands_, sentinels_, std::move(done));
  redis::diagnose(commands_, std::move(done));
}

void RedisBackend::close(std::function<void()> done) {
  TryBackend::close([this, done = std::move(done)] { releases_.finish(done); });
}

// --- The connection --------------------------------------------------------------------------------------------------

void RedisBackend::connected(bool acquires) {
  if (acquires) {
    outage_.reconnected();
    // Whether this server is of more use than the last one, one waiter finds out. Not from inside: the connection is
    // just being set up.
    host().executor().post(lifetime_.guard([this] {
      if (!queue_.look()) wake_ups_.look();
    }));
  }
  if (!std::exchange(eviction_checked_, true)) check_eviction();
}

// The name may lead to another server now, as after a failover, and a waiter is heard only where others publish. So all
// connections are made anew, the subscriber's when a command was answered on the new one.
void RedisBackend::broken(const Failure& why) {
  outage_.failed({errc::unavailable, why.detail});
  subscriber_.rest();
  queue_.unsubscribed();
  commands_.reconnect(why);
  if (acknowledged_) acknowledged_->reconnect(why);
  renewals_.reconnect(why);
}

void RedisBackend::outage_over(bool everyone) {
  subscriber_.resume();
  if (!everyone) return;
  // The server may have forgotten who waits.
  queue_.recovered();
  wake_ups_.recovered();
}

// Locks are exactly the keys that a server short of memory evicts first.
void RedisBackend::check_eviction() {
  const TimePoint deadline = saturating_add(host().executor().now(), options_.response_timeout);
  (void)commands_.request({"INFO", "memory"}, deadline, [this](Result<Reply> reply, TimePoint) {
    // Without the right to ask there is nothing to tell; `diagnose` says so.
    if (!reply.ok() || !reply.value().is(Reply::Type::string)) return;
    if (auto danger = eviction_danger(reply.value().text)) {
      host().warn({.name = "", .reason = {errc::unavailable, *std::move(danger)}});
    }
  });
}

void RedisBackend::publish_forbidden() {
  if (std::exchange(publish_warned_, true)) return;
  host().warn({.name = "",
               .reason = {errc::access_denied,
                          "this user may not publish on dlock:w:*, so waiters are not woken when a "
                          "lock is released; they find out by asking"}});
}

void RedisBackend::subscribe_forbidden(const Failure& why) {
  host().warn({.name = "",
               .reason = {errc::access_denied,
                          "this user may not subscribe to dlock:w:*, so waiters find out by "
                          "asking that a lock was released: " +
                              why.detail}});
}

// --- Factory ---------------------------------------------------------------------------------------------------------

std::unique_ptr<Backend> make_redis_backend(BackendHost& host, const BackendConfig& config) {
  Options options = parse_options(config);
  const auto wires_with = [](const std::optional<common::TlsOptions>& tls) {
    return socket_wires(tls ? common::make_tls_context(*tls) : nullptr);
  };
  WireFactory wires = wires_with(options.tls);
  if (!options.sentinel) return std::make_unique<RedisBackend>(host, std::move(options), std::move(wires));
  auto sentinels = std::make_shared<Sentinels>(host.executor(), options, wires_with(options.sentinel->tls));
  wires = sentinel_wires(sentinels, std::move(wires));
  return std::make_unique<RedisBackend>(host, std::move(options), std::move(wires), std::move(sentinels));
}

}  // namespace dlock::redis
