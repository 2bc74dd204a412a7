#include "backends/memory/memory_backend.hpp"

#include <cstdint>
#include <utility>

#include <dlock/spi/executor.hpp>
#include <dlock/spi/lifetime.hpp>

#include "backends/memory/queue_contention.hpp"

namespace dlock::memory {

std::string_view to_string(Strategy strategy) noexcept {
  using enum Strategy;
  return strategy == queue ? "queue" : strategy == watch ? "watch" : "poll";
}

TryPolicy policy_of(Strategy strategy) {
  TryPolicy policy;
  if (strategy == Strategy::poll) {
    policy.poll_min = std::chrono::milliseconds(20);
    policy.poll_max = std::chrono::milliseconds(40);
  }
  return policy;
}

Capabilities capabilities_of(Strategy strategy) noexcept {
  const bool queue = strategy == Strategy::queue;
  return {
      .backend = "memory",
      .strategy = to_string(strategy),
      .scope = Scope::process,
      .lease_kind = LeaseKind::per_lock,
      .fencing = FencingDurability::wall_clock,
      .fair = queue,
      .wakes_waiters = strategy != Strategy::poll,
      .wakes_one = queue,
      .counts_waiters = queue,
      .read_write_locks = true,
      .semaphores = true,
      .elections = true,
      .can_inspect = true,
      .can_list = true,
      .can_break = true,
      .can_forget = true,
      .can_forget_idle = true,
      .immediate = true,
      .min_lease = std::chrono::milliseconds(10),
      .max_lease = std::chrono::hours(24),
  };
}

MemoryBackend::MemoryBackend(BackendHost& host, std::shared_ptr<MemoryStore> store, Strategy strategy)
    : TryBackend(host, policy_of(strategy)),
      executor_(host.executor()),
      store_(std::move(store)),
      strategy_(strategy),
      mark_(4 * policy_of(strategy).poll_max) {}

// --- Acquire ---------------------------------------------------------------------------------------------------------

std::unique_ptr<Contention> MemoryBackend::contend(const LockRequest& request, GrantSink& sink) {
  if (strategy_ != Strategy::queue || !request.wait) return TryBackend::contend(request, sink);
  auto contention = std::make_unique<QueueContention>(executor_, *store_, request, sink);
  contention->start();
  return contention;
}

void MemoryBackend::try_acquire(const LockRequest& request, TryHandler done) {
  using Status = TryOutcome::Status;
  const TimePoint sent = executor_.now();
  const MemoryStore::Answer answer = store_->try_acquire(request, mark_, clock());
  if (answer.other_permits != 0) {
    return done({.status = Status::failed, .failure = other_permits(request, answer.other_permits)});
  }
  if (!answer.granted) return done({.status = Status::busy, .retry_after = answer.lease_ends - executor_.now()});
  const TimePoint valid_until = lease_valid_until(sent, request.lease);
  done({.status = Status::granted,
        .grant = {request.name, request.owner, answer.token, valid_until, request.lease, request.kind, request.mode}});
}

void MemoryBackend::abandon(const LockRequest& request) {
  (void)store_->release(request.kind, request.name, request.owner, clock());
}

namespace {

class StoreWatch final : public Watch {
 public:
  StoreWatch(Executor& executor, std::shared_ptr<MemoryStore> store, LockKind kind, std::string name,
             std::function<void()> changed)
      : store_(std::move(store)), kind_(kind), name_(std::move(name)) {
    number_ = store_->watch(kind_, name_, [&executor, handler = lifetime_.guard(std::move(changed))] {
      executor.post(handler);  // a copy: the call may end the watch
    });
  }
  ~StoreWatch() override { store_->unwatch(kind_, name_, number_); }

 private:
  const std::shared_ptr<MemoryStore> store_;
  const LockKind kind_;
  const std::string name_;
  std::uint64_t number_ = 0;
  Lifetime lifetime_;
};

}  // namespace

std::unique_ptr<Watch> MemoryBackend::watch(LockKind kind, const std::string& name, std::function<void()> changed) {
  if (strategy_ == Strategy::poll) return nullptr;
  return std::make_unique<StoreWatch>(executor_, store_, kind, name, std::move(changed));
}

// --- While held ------------------------------------------------------------------------------------------------------

void MemoryBackend::renew(const Grant& grant, RenewHandler done) {
  using Status = RenewOutcome::Status;
  const TimePoint sent = executor_.now();
  if (!store_->renew(grant, clock())) {
    return done({.status = Status::lost, .failure = {errc::lost, "the lease expired or was broken"}});
  }
  done({.status = Status::renewed, .valid_until = lease_valid_until(sent, grant.lease)});
}

void MemoryBackend::release(const Grant& grant, ReleaseHandler done) {
  using Status = ReleaseOutcome::Status;
  const bool ours = store_->release(grant.kind, grant.name, grant.owner, clock());
  done({.status = ours ? Status::released : Status::not_owner});
}

// --- Questions and administration ------------------------------------------------------------------------------------

void MemoryBackend::inspect(LockKind kind, const std::string& name, Handler<LockInfo> done) {
  LockInfo info = store_->inspect(kind, name, clock());
  if (strategy_ != Strategy::queue) info.waiters.reset();  // they do not stand in the queue
  done(std::move(info));
}

void MemoryBackend::list(LockKind kind, Handler<std::vector<LockInfo>> done) {
  std::vector<LockInfo> all = store_->list(kind, clock());
  for (LockInfo& info : all) {
    if (strategy_ != Strategy::queue) info.waiters.reset();
  }
  done(std::move(all));
}

void MemoryBackend::break_lock(LockKind kind, const std::string& name, Handler<bool> done) {
  done(store_->break_lock(kind, name, clock()));
}

void MemoryBackend::forget(const Forgetting& what, Handler<std::vector<std::string>> done) {
  done(store_->forget(what, clock()));
}

void MemoryBackend::diagnose(Handler<std::vector<Finding>> done) {
  using enum Finding::Severity;
  const std::size_t names = store_->list(LockKind::lock, clock()).size();
  done(std::vector<Finding>{
      {ok, "store", "reached; it knows " + std::to_string(names) + " names"},
      {note, "scope", "only clients in this process see these locks; use file:// for the whole machine"}});
}

// --- Factory ---------------------------------------------------------------------------------------------------------

namespace {

std::string store_name(const Url& url) {
  if (url.user() || url.password()) throw Error(errc::invalid_argument, "memory:// takes no user or password");
  if (!url.path().empty()) throw Error(errc::invalid_argument, "memory://name takes no path after the name");
  if (url.hosts().empty()) return "";
  if (url.hosts().size() > 1) throw Error(errc::invalid_argument, "memory:// takes one name, not a list");
  if (url.hosts().front().port) throw Error(errc::invalid_argument, "memory://name takes no port");
  return url.hosts().front().name;
}

}  // namespace

std::unique_ptr<Backend> make_memory_backend(BackendHost& host, const BackendConfig& config) {
  Url url = config.url;
  const auto strategy = url.take_choice<Strategy>(
      "strategy", {{"queue", Strategy::queue}, {"watch", Strategy::watch}, {"poll", Strategy::poll}}, Strategy::queue);
  url.require_no_parameters();
  return std::make_unique<MemoryBackend>(host, MemoryStore::named(store_name(url)), strategy);
}

}  // namespace dlock::memory
