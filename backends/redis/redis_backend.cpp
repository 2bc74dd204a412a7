#include "backends/redis/redis_backend.hpp"

#include <utility>

#include "backends/common/refusals.hpp"
#include "backends/redis/administration/inspection.hpp"
#include "backends/redis/cluster/cluster.hpp"
#include "backends/redis/connection/server_info.hpp"
#include "backends/redis/connection/streams.hpp"
#include "backends/redis/requests/answers.hpp"
#include "backends/redis/requests/keys.hpp"
#include "backends/redis/requests/release_request.hpp"
#include "backends/redis/requests/renewal.hpp"
#include "backends/redis/sentinel/sentinel_stream.hpp"
#include "backends/redis/sentinel/sentinel_topology.hpp"
#include "backends/redis/timing.hpp"
#include "backends/redis/topology/single.hpp"
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

std::string_view scheme_of(const Options& options) {
  if (options.sentinel) return options.tls ? "rediss-sentinel" : "redis-sentinel";
  if (options.cluster) return options.tls ? "rediss-cluster" : "redis-cluster";
  return options.tls ? "rediss" : "redis";
}

// sentinels: those that the options name.
std::unique_ptr<Topology> make_topology(BackendHost& host, const Options& options, StreamFactory streams,
                                        std::shared_ptr<Sentinels> sentinels, Node::User& user) {
  if (options.cluster) return std::make_unique<Cluster>(host, options, std::move(streams), user);
  if (!sentinels) return std::make_unique<Single>(host, options, streams, user);
  return std::make_unique<SentinelTopology>(host, options, streams, user, std::move(sentinels));
}

}  // namespace

RedisBackend::RedisBackend(BackendHost& host, Options options, StreamFactory streams,
                           std::shared_ptr<Sentinels> sentinels)
    : TryBackend(host, policy_of(options.strategy)),
      options_(std::move(options)),
      client_(host.new_owner_id().to_string()),
      topology_(make_topology(host, options_, std::move(streams), std::move(sentinels), *this)),
      acquirer_(*topology_, client_),
      cleanup_(host.executor(), options_.response_timeout, alive_for,
               release_requests(*topology_, client_, [this] { on_publish_forbidden(); })),
      wake_ups_(*topology_, acquirer_, cleanup_, client_) {}

// Lets a server that is unresponsive now, and recovers later, free the grants that were never confirmed.
RedisBackend::~RedisBackend() {
  cleanup_.for_each_unconfirmed([this](const Cleanup::Claim& claim) {
    release_at_the_end(*topology_, claim.kind, lock_key(options_, claim.name, claim.kind),
                       value_of(client_, claim.owner));
  });
  topology_->stop();
}

Capabilities RedisBackend::capabilities() const noexcept {
  const bool queue = options_.strategy == Strategy::queue;
  return {
      .backend = scheme_of(options_),
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

std::optional<Failure> RedisBackend::problem_with(LockKind kind, const std::string& name) const {
  if (!is_reserved(prefix_of(options_.prefix, kind), name)) return std::nullopt;
  return Failure{errc::invalid_argument, "lock name " + util::quoted(name) +
                                             ": with this prefix, its key would clash with a key of another lock"};
}

std::unique_ptr<Contention> RedisBackend::contend(const LockRequest& request, GrantSink& sink) {
  if (auto problem = problem_with(request.kind, request.name)) return common::refuse(sink, *std::move(problem));
  if (options_.strategy == Strategy::queue && request.wait) return wake_ups_.contend(request, sink);
  return TryBackend::contend(request, sink);
}

void RedisBackend::try_acquire(const LockRequest& request, TryHandler done) {
  try_until(topology_->answer_by(), request, std::move(done));
}

void RedisBackend::try_until(TimePoint deadline, const LockRequest& request, TryHandler done) {
  const bool marks = request.wait && request.kind == LockKind::read_write && request.mode == Mode::exclusive;
  (void)acquirer_.start(
      request, {.mode = marks ? AcquireMode::mark : AcquireMode::try_once}, deadline,
      [this, deadline, request, done = std::move(done)](Result<AcquireAnswer> answer, TimePoint sent) {
        using Status = TryOutcome::Status;
        if (!answer.ok()) {
          // After a malformed reply the outcome is unknown, and this try is not repeated.
          if (answer.failure().code == errc::protocol) abandon(request);
          if (answer.failure().code == errc::ambiguous) cleanup_.in_doubt(request.owner, alive_for);
          return done({.status = Status::failed, .failure = answer.failure()});
        }
        const AcquireAnswer& said = answer.value();
        if (said.more && host().executor().now() < deadline) return try_until(deadline, request, done);
        if (!said.granted) return done({.status = Status::busy, .retry_after = said.free_in});
        done({.status = Status::granted, .grant = grant_of(request, said, sent)});
      });
}

std::unique_ptr<Watch> RedisBackend::watch(LockKind kind, const std::string& name, std::function<void()> changed) {
  if (options_.strategy == Strategy::poll || topology_->is_forbidden()) return nullptr;
  return wake_ups_.watch(lock_channel(options_, lock_key(options_, name, kind)), std::move(changed));
}

void RedisBackend::abandon(const LockRequest& request) {
  cleanup_.abandon(request, true);
}

void RedisBackend::renew(const Grant& grant, RenewHandler done) {
  redis::renew(*topology_, client_, grant, std::move(done));
}

void RedisBackend::release(const Grant& grant, ReleaseHandler done) {
  topology_->done_with(grant.owner);
  cleanup_.release(grant, std::move(done));
}

// --- Questions and administration ------------------------------------------------------------------------------------

void RedisBackend::inspect(LockKind kind, const std::string& name, Handler<LockInfo> done) {
  if (auto problem = problem_with(kind, name)) return done(*std::move(problem));
  redis::inspect(*topology_, kind, name, std::move(done));
}

void RedisBackend::list(LockKind kind, Handler<std::vector<LockInfo>> done) {
  redis::list(*topology_, kind, std::move(done));
}

void RedisBackend::break_lock(LockKind kind, const std::string& name, Handler<bool> done) {
  if (auto problem = problem_with(kind, name)) return done(*std::move(problem));
  redis::break_lock(*topology_, kind, name, std::move(done));
}

void RedisBackend::forget(const Forgetting& what, Handler<std::vector<std::string>> done) {
  if (auto problem = problem_with(what.kind, what.name)) return done(*std::move(problem));
  redis::forget(*topology_, what, std::move(done));
}

void RedisBackend::diagnose(Handler<std::vector<Finding>> done) {
  topology_->diagnose(std::move(done));
}

void RedisBackend::close(std::function<void()> done) {
  TryBackend::close([this, done = std::move(done)] { cleanup_.finish(done); });
}

// --- Servers ---------------------------------------------------------------------------------------------------------

void RedisBackend::on_state(Node& node, NodeState state) {
  if (state != NodeState::connected) return wake_ups_.on_state(node, state);
  // In a task of its own: the connection is just being set up.
  host().executor().post(lifetime_.guard([this, host = node.options().host] {
    const Node* const there = topology_->master_at(host);
    if (there != nullptr) wake_ups_.on_state(*there, NodeState::connected);
  }));
  warn_of_unknown_role(node);
  if (!eviction_warned_) check_eviction(node);
}

// Locks are exactly the keys that a server short of memory evicts first.
void RedisBackend::check_eviction(Node& node) {
  (void)node.commands().request({"INFO", "memory"}, topology_->answer_by(), [this](Result<Reply> reply, TimePoint) {
    // Without the right to run INFO, nothing is reported here, but by `diagnose`.
    if (!reply.ok() || !reply.value().is(Reply::Type::string)) return;
    if (auto danger = eviction_danger(reply.value().text); danger && !std::exchange(eviction_warned_, true)) {
      host().warn({.name = "", .reason = {errc::unavailable, *std::move(danger)}});
    }
  });
}

void RedisBackend::warn_of_unknown_role(Node& node) {
  if (!options_.needs_master() || node.line(Line::acknowledged).knows_role() || std::exchange(role_warned_, true))
    return;
  host().warn(
      {.name = "",
       .reason = {errc::access_denied,
                  "this user may run neither ROLE nor INFO, so a replica that accepts writes is not recognised: "
                  "two clients could hold the same lock, one there, one at the master"}});
}

void RedisBackend::on_publish_forbidden() {
  if (std::exchange(publish_warned_, true)) return;
  if (options_.cluster && topology_->is_forbidden()) return;  // the host was warned of that
  host().warn({.name = "",
               .reason = {errc::access_denied,
                          "this user may not publish on dlock:w:*, so waiters are not woken when a lock is released; "
                          "they poll instead"}});
}

void RedisBackend::on_forbidden(const Failure& why) {
  wake_ups_.on_forbidden();
  if (why.code == errc::unsupported) {
    return host().warn(
        {.name = "",
         .reason = {
             errc::unsupported,
             "sharded channels need Redis 7.0, so waiters are not woken when a lock is released; they poll instead: " +
                 why.detail}});
  }
  host().warn({.name = "",
               .reason = {errc::access_denied,
                          "this user may not subscribe to dlock:w:*, so waiters are not woken when a lock is released; "
                          "they poll instead: " +
                              why.detail}});
}

// --- Factory ---------------------------------------------------------------------------------------------------------

std::unique_ptr<Backend> make_redis_backend(BackendHost& host, const BackendConfig& config) {
  Options options = parse_options(config);
  const auto streams_with = [&host](const std::optional<common::TlsOptions>& tls) {
    return tcp_streams(tls ? common::make_tls_context(*tls, common::warn_at(host)) : nullptr);
  };
  if (options.password_file) options.password_file->check();
  if (options.sentinel && options.sentinel->password_file) options.sentinel->password_file->check();
  StreamFactory streams = streams_with(options.tls);
  if (!options.sentinel) return std::make_unique<RedisBackend>(host, std::move(options), std::move(streams));
  auto sentinels = std::make_shared<Sentinels>(host.executor(), options, streams_with(options.sentinel->tls));
  streams = sentinel_streams(sentinels, std::move(streams));
  return std::make_unique<RedisBackend>(host, std::move(options), std::move(streams), std::move(sentinels));
}

}  // namespace dlock::redis
