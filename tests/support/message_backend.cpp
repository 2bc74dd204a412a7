#include "tests/support/message_backend.hpp"

#include <type_traits>

namespace dlock::messages {

MessageBackend::MessageBackend(BackendHost& host, const BackendConfig& config,
                               std::shared_ptr<memory::MemoryStore> store, std::shared_ptr<Faults> faults,
                               memory::Strategy strategy)
    : TryBackend(host, memory::policy_of(strategy)),
      executor_(host.executor()),
      faults_(std::move(faults)),
      holder_(config.holder),
      response_timeout_(config.response_timeout),
      store_(host, std::move(store), strategy),
      cleanup_(executor_, response_timeout_, std::chrono::nanoseconds::zero(),
               [this](const Cleanup::Claim& claim, Cleanup::Reason, TimePoint, Cleanup::Answer answer) {
                 const Grant grant{claim.name, claim.owner, {}, {}, {}, claim.kind};
                 const auto call = [this, grant](const Cleanup::Answer& released) {
                   store_.release(grant, [&released](const ReleaseOutcome& outcome) {
                     released(outcome.status == ReleaseOutcome::Status::released);
                   });
                 };
                 ask<Result<bool>>(Operation::other_request, call, std::move(answer));
               }) {}

Capabilities MessageBackend::capabilities() const noexcept {
  Capabilities capabilities = store_.capabilities();
  capabilities.backend = "messages";
  capabilities.immediate = false;
  return capabilities;
}

// --- Messages --------------------------------------------------------------------------------------------------------

// A request and its state.
struct MessageBackend::Exchange {
  std::function<Reply()> service;           // runs at the store
  std::function<void(Failure)> unanswered;  // runs at the client
  Delivery delivery;
  bool over = false;                        // answered, or timed out
  std::list<Timer>::iterator timeout = {};  // until it has ended
};

template <class Outcome, class Call>
void MessageBackend::ask(Operation operation, Call call, Then<Outcome> done, Then<Outcome> late) {
  // Copies: the request may still be in flight when the caller's objects are destroyed.
  send(
      operation,
      [call, done, late]() -> Reply {
        std::optional<Outcome> outcome;
        call([&outcome](Outcome answer) { outcome.emplace(std::move(answer)); });
        return [outcome = *std::move(outcome), done, late](bool in_time) {
          if (in_time) {
            done(outcome);
          } else {
            late(outcome);
          }
        };
      },
      [done](Failure why) {
        if constexpr (std::is_convertible_v<Failure, Outcome>) {
          done(std::move(why));
        } else {
          done({.status = Outcome::Status::failed, .failure = std::move(why)});
        }
      });
}

void MessageBackend::send(Operation operation, std::function<Reply()> service,
                          std::function<void(Failure)> unanswered) {
  const Delivery delivery = faults_->plan({operation, holder_});
  if (delivery.fate == Delivery::Fate::refused) return unanswered({errc::unavailable, "the memory store was cut off"});

  const auto exchange = std::make_shared<Exchange>(Exchange{std::move(service), std::move(unanswered), delivery});
  exchange->timeout = schedule(response_timeout_, [exchange] {
    exchange->over = true;
    exchange->unanswered({errc::ambiguous, "the memory store did not answer"});
  });
  if (delivery.duplicate) after(*delivery.duplicate, [this, exchange] { arrive(exchange); });
  deliver(delivery, [this, exchange] { arrive(exchange); });
}

void MessageBackend::arrive(const std::shared_ptr<Exchange>& exchange) {
  if (dead()) return;
  const Reply reply = exchange->service();
  if (exchange->delivery.reply_lost) return;
  after(exchange->delivery.reply_delay, [this, exchange, reply] {
    if (dead()) return;
    const bool in_time = !std::exchange(exchange->over, true);
    if (in_time) timers_.erase(exchange->timeout);
    reply(in_time);
  });
}

void MessageBackend::notify(const std::function<void()>& changed) {
  deliver(faults_->plan({Operation::notice, holder_}), [this, changed] {
    if (!dead()) changed();
  });
}

void MessageBackend::deliver(const Delivery& delivery, Executor::Task task) {
  if (delivery.fate == Delivery::Fate::arrives) {
    after(delivery.delay, std::move(task));
  } else if (delivery.fate == Delivery::Fate::held) {
    faults_->hold(this, executor_, lifetime_.guard(std::move(task)));
  }
}

void MessageBackend::after(std::chrono::nanoseconds delay, Executor::Task task) {
  if (delay <= std::chrono::nanoseconds::zero()) return task();
  (void)schedule(delay, std::move(task));
}

std::list<Timer>::iterator MessageBackend::schedule(std::chrono::nanoseconds delay, Executor::Task task) {
  timers_.emplace_front(executor_);
  const auto timer = timers_.begin();
  timer->arm(saturating_add(executor_.now(), delay), [this, timer, task = std::move(task)]() mutable {
    const Executor::Task due = std::move(task);
    timers_.erase(timer);
    due();
  });
  return timer;
}

// --- Acquire ---------------------------------------------------------------------------------------------------------

// The library's contention, and a record that it continues: a late answer to a try of its owner needs no clean-up.
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
  return std::make_unique<Trying>(*this, request, sink);
}

void MessageBackend::try_acquire(const LockRequest& request, TryHandler done) {
  using Status = TryOutcome::Status;
  ask<TryOutcome>(
      Operation::acquire, [this, request](TryHandler answer) { store_.try_acquire(request, std::move(answer)); },
      [this, sent = executor_.now(), done = std::move(done)](TryOutcome outcome) {
        if (outcome.status == Status::granted) {
          outcome.grant.valid_until = lease_valid_until(sent, outcome.grant.lease);
          if (trying_.contains(outcome.grant.owner)) held_.insert(outcome.grant.owner);
        }
        done(std::move(outcome));
      },
      [this](const TryOutcome& outcome) {
        const OwnerId& owner = outcome.grant.owner;
        if (outcome.status != Status::granted || trying_.contains(owner) || held_.contains(owner)) return;
        cleanup_.abandon(outcome.grant, true);
      });
}

class MessageBackend::Notices final : public Watch {
 public:
  Notices(MessageBackend& backend, LockKind kind, const std::string& name, std::function<void()> changed)
      : watch_(backend.store_.watch(
            kind, name, [&backend, changed = lifetime_.guard(std::move(changed))] { backend.notify(changed); })) {}

 private:
  Lifetime lifetime_;
  std::unique_ptr<Watch> watch_;
};

std::unique_ptr<Watch> MessageBackend::watch(LockKind kind, const std::string& name, std::function<void()> changed) {
  if (!store_.capabilities().wakes_waiters) return nullptr;
  return std::make_unique<Notices>(*this, kind, name, std::move(changed));
}

// --- While held ------------------------------------------------------------------------------------------------------

void MessageBackend::renew(const Grant& grant, RenewHandler done) {
  using Status = RenewOutcome::Status;
  ask<RenewOutcome>(
      Operation::other_request, [this, grant](RenewHandler answer) { store_.renew(grant, std::move(answer)); },
      [this, grant, sent = executor_.now(), done = std::move(done)](RenewOutcome outcome) {
        if (outcome.status == Status::renewed) outcome.valid_until = lease_valid_until(sent, grant.lease);
        if (outcome.status == Status::lost) held_.erase(grant.owner);
        done(std::move(outcome));
      });
}

void MessageBackend::release(const Grant& grant, ReleaseHandler done) {
  held_.erase(grant.owner);
  cleanup_.release(grant, std::move(done));
}

// --- Questions and administration ------------------------------------------------------------------------------------

namespace {

template <class T>
Backend::Handler<T> as_question(Backend::Handler<T> done) {
  return [done = std::move(done)](Result<T> answer) {
    if (!answer.ok()) return done(unanswered_question(answer.failure()));
    done(std::move(answer));
  };
}

}  // namespace

void MessageBackend::inspect(LockKind kind, const std::string& name, Handler<LockInfo> done) {
  ask<Result<LockInfo>>(
      Operation::other_request,
      [this, kind, name](Handler<LockInfo> answer) { store_.inspect(kind, name, std::move(answer)); },
      as_question(std::move(done)));
}

void MessageBackend::list(LockKind kind, Handler<std::vector<LockInfo>> done) {
  ask<Result<std::vector<LockInfo>>>(
      Operation::other_request,
      [this, kind](Handler<std::vector<LockInfo>> answer) { store_.list(kind, std::move(answer)); },
      as_question(std::move(done)));
}

void MessageBackend::break_lock(LockKind kind, const std::string& name, Handler<bool> done) {
  ask<Result<bool>>(
      Operation::other_request,
      [this, kind, name](Handler<bool> answer) { store_.break_lock(kind, name, std::move(answer)); }, std::move(done));
}

void MessageBackend::forget(const Forgetting& what, Handler<std::vector<std::string>> done) {
  ask<Result<std::vector<std::string>>>(
      Operation::other_request,
      [this, what](Handler<std::vector<std::string>> answer) { store_.forget(what, std::move(answer)); },
      std::move(done));
}

void MessageBackend::close(std::function<void()> done) {
  TryBackend::close([this, done = std::move(done)] {
    if (dead()) return done();
    cleanup_.finish(done);
  });
}

}  // namespace dlock::messages
