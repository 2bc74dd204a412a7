#include "tests/support/messages/message_backend.hpp"

#include <utility>

namespace dlock::messages {

MessageBackend::MessageBackend(BackendHost& host, const BackendConfig& config,
                               std::shared_ptr<memory::MemoryStore> store, std::shared_ptr<Faults> faults,
                               memory::Strategy strategy)
    : TryBackend(host, policy_of(strategy)),
      strategy_(strategy),
      mark_(4 * policy_of(strategy).poll_max),
      connection_(host.executor(), std::move(store), std::move(faults), config.holder, config.response_timeout, *this),
      cleanup_(host.executor(), config.response_timeout, {},
               [this](const Cleanup::Claim& claim, Cleanup::Reason, TimePoint, Cleanup::Answer answer) {
                 if (connection_.dead()) return answer(false);  // the store has forgotten everything of this client
                 connection_.request(
                     Operation::release, claim.owner, claim,
                     [&clock = connection_.clock()](memory::MemoryStore& store, const Cleanup::Claim& what) {
                       return store.release(what.kind, what.name, what.owner, clock);
                     },
                     [answer = std::move(answer)](const Cleanup::Claim&, const Result<bool>& ours) { answer(ours); });
               }),
      queue_(connection_, cleanup_) {}

Capabilities MessageBackend::capabilities() const noexcept {
  Capabilities capabilities = capabilities_of(strategy_);
  capabilities.backend = "messages";
  capabilities.immediate = false;
  return capabilities;
}

// --- Acquire ---------------------------------------------------------------------------------------------------------

// The ready-made contention, and that it goes on: an answer to an earlier try of its owner is nothing to clean up.
class MessageBackend::Trying final : public Contention {
 public:
  Trying(MessageBackend& backend, const LockRequest& request, GrantSink& sink)
      : backend_(backend), owner_(request.owner) {
    backend_.trying_.insert(owner_);
    contention_ = backend_.TryBackend::contend(request, sink);
  }
  ~Trying() override { backend_.trying_.erase(owner_); }

 private:
  MessageBackend& backend_;
  const OwnerId owner_;
  std::unique_ptr<Contention> contention_;
};

std::unique_ptr<Contention> MessageBackend::contend(const LockRequest& request, GrantSink& sink) {
  if (strategy_ == memory::Strategy::queue && request.wait) return queue_.contend(request, sink);
  return std::make_unique<Trying>(*this, request, sink);
}

void MessageBackend::try_acquire(const LockRequest& request, TryHandler done) {
  const TimePoint sent = connection_.executor().now();
  Connection& connection = connection_;
  connection_.request(
      Operation::try_acquire, request.owner, request,
      [&connection, mark = mark_](memory::MemoryStore& store, const LockRequest& asked) {
        return store.try_acquire(asked, mark, connection.clock());
      },
      [this, &clock = connection.clock(), sent, done = std::move(done)](const LockRequest& asked,
                                                                        Result<memory::MemoryStore::Answer> result) {
        using Status = TryOutcome::Status;
        if (!result.ok()) return done({.status = Status::failed, .failure = result.failure()});
        const memory::MemoryStore::Answer& answer = result.value();
        if (answer.other_permits != 0) {
          return done({.status = Status::failed, .failure = other_permits(asked, answer.other_permits)});
        }
        if (!answer.granted) return done({.status = Status::busy, .retry_after = answer.lease_ends - clock.now()});
        if (trying_.contains(asked.owner)) queue_.keep(asked.owner);
        const TimePoint valid_until = lease_valid_until(sent, asked.lease);
        done({.status = Status::granted,
              .grant = {asked.name, asked.owner, answer.token, valid_until, asked.lease, asked.kind, asked.mode}});
      },
      [this](const LockRequest& asked, const memory::MemoryStore::Answer& answer) {
        if (answer.granted && !trying_.contains(asked.owner)) queue_.unexpected({asked.kind, asked.name, asked.owner});
      });
}

void MessageBackend::abandon(const LockRequest& request) {
  cleanup_.abandon(request, false);
}

class MessageBackend::StoreWatch final : public Watch {
 public:
  StoreWatch(MessageBackend& backend, LockKind kind, std::string name, std::function<void()> changed)
      : store_(backend.connection_.store()), kind_(kind), name_(std::move(name)) {
    number_ = store_.watch(kind, name_, backend.connection_.notices_for(lifetime_.guard(std::move(changed))));
  }
  ~StoreWatch() override { store_.unwatch(kind_, name_, number_); }

 private:
  memory::MemoryStore& store_;
  const LockKind kind_;
  const std::string name_;
  std::uint64_t number_ = 0;
  Lifetime lifetime_;
};

std::unique_ptr<Watch> MessageBackend::watch(LockKind kind, const std::string& name, std::function<void()> changed) {
  if (strategy_ == memory::Strategy::poll) return nullptr;
  return std::make_unique<StoreWatch>(*this, kind, name, std::move(changed));
}

// --- While held ------------------------------------------------------------------------------------------------------

void MessageBackend::renew(const Grant& grant, RenewHandler done) {
  const TimePoint sent = connection_.executor().now();
  const Clock& clock = connection_.clock();
  connection_.request(
      Operation::renew, grant.owner, grant,
      [&clock](memory::MemoryStore& store, const Grant& held) { return store.renew(held, clock); },
      [this, sent, done = std::move(done)](const Grant& held, Result<bool> renewed) {
        using Status = RenewOutcome::Status;
        if (!renewed.ok()) return done({.status = Status::failed, .failure = renewed.failure()});
        if (!renewed.value()) {
          queue_.drop(held.owner);
          return done({.status = Status::lost, .failure = {errc::lost, "the lease expired or was broken"}});
        }
        done({.status = Status::renewed, .valid_until = lease_valid_until(sent, held.lease)});
      });
}

void MessageBackend::release(const Grant& grant, ReleaseHandler done) {
  queue_.drop(grant.owner);
  cleanup_.release(grant, std::move(done));
}

// --- Questions and administration ------------------------------------------------------------------------------------

void MessageBackend::inspect(LockKind kind, const std::string& name, Handler<LockInfo> done) {
  const Clock& clock = connection_.clock();
  connection_.request(
      Operation::inspect, OwnerId(), name,
      [&clock, kind](memory::MemoryStore& store, const std::string& asked) {
        return store.inspect(kind, asked, clock);
      },
      [strategy = strategy_, done = std::move(done)](const std::string&, Result<LockInfo> info) {
        if (!info.ok()) return done(unanswered_question(info.failure()));
        if (strategy != memory::Strategy::queue) info.value().waiters.reset();  // ours do not stand in the queue
        done(std::move(info));
      });
}

void MessageBackend::list(LockKind kind, Handler<std::vector<LockInfo>> done) {
  const Clock& clock = connection_.clock();
  connection_.request(
      Operation::list, OwnerId(), kind,
      [&clock](memory::MemoryStore& store, LockKind asked) { return store.list(asked, clock); },
      [strategy = strategy_, done = std::move(done)](LockKind, Result<std::vector<LockInfo>> all) {
        if (!all.ok()) return done(unanswered_question(all.failure()));
        for (auto& info : all.value()) {
          if (strategy != memory::Strategy::queue) info.waiters.reset();
        }
        done(std::move(all));
      });
}

void MessageBackend::break_lock(LockKind kind, const std::string& name, Handler<bool> done) {
  const Clock& clock = connection_.clock();
  connection_.request(
      Operation::break_lock, OwnerId(), name,
      [&clock, kind](memory::MemoryStore& store, const std::string& asked) {
        return store.break_lock(kind, asked, clock);
      },
      [done = std::move(done)](const std::string&, Result<bool> broken) { done(std::move(broken)); });
}

void MessageBackend::forget(const Forgetting& what, Handler<std::vector<std::string>> done) {
  const Clock& clock = connection_.clock();
  connection_.request(
      Operation::forget, OwnerId(), what,
      [&clock](memory::MemoryStore& store, const Forgetting& asked) { return store.forget(asked, clock); },
      [done = std::move(done)](const Forgetting&, Result<std::vector<std::string>> removed) {
        done(std::move(removed));
      });
}

void MessageBackend::diagnose(Handler<std::vector<Finding>> done) {
  list(LockKind::lock, [done = std::move(done)](Result<std::vector<LockInfo>> all) {
    using enum Finding::Severity;
    if (!all.ok()) return done(std::vector<Finding>{{error, "store", all.failure().detail}});
    done(std::vector<Finding>{
        {ok, "store", "reached; it knows " + std::to_string(all.value().size()) + " names"},
        {note, "scope", "only clients in this process see these locks; use file:// for the whole machine"}});
  });
}

void MessageBackend::close(std::function<void()> done) {
  TryBackend::close([this, done = std::move(done)] { cleanup_.finish(done); });
}

}  // namespace dlock::messages
