#include <dlock/spi/try_backend.hpp>

#include <algorithm>
#include <utility>

#include <dlock/spi/waiter.hpp>

namespace dlock {

namespace {

// Tries in flight whose callers no longer wait. Their grants must be released before the backend is destroyed.
struct Orphans {
  std::size_t count = 0;
  std::function<void()> all_gone;

  void gone() {
    if (--count > 0 || !all_gone) return;
    const auto report = std::exchange(all_gone, nullptr);
    report();
  }
};

// The order try, watch, try again is what makes a wake-up impossible to lose: the second try sees a release before the
// watch was set, the watch sees a release after that. An uncontended acquire is one try and no watch.
class TryContention final : public Waiter {
 public:
  TryContention(TryBackend& backend, std::weak_ptr<Orphans> orphans, Executor& executor, const TryPolicy& policy,
                const LockRequest& request, GrantSink& sink)
      : Waiter(executor, request, sink, Backoff(policy.backoff_max, policy.backoff_min)),
        backend_(backend),
        policy_(policy),
        tries_(std::make_shared<Tries>(Tries{request, std::move(orphans), this})) {}
  ~TryContention() override { cancel(); }

 private:
  // Shared with the handler of a try in flight, which may come back after the contention was destroyed.
  struct Tries {
    const LockRequest request;
    const std::weak_ptr<Orphans> orphans;
    TryContention* contention;  // nullptr: gave up
    bool in_flight = false;
    // A try ended without an answer, and no later one was granted. A later busy answer proves nothing: the first try
    // may still arrive, over a different connection.
    bool outcome_unknown = false;
    bool found_busy = false;

    void ended(const TryOutcome& outcome) {
      in_flight = false;
      if (outcome.status == TryOutcome::Status::granted) outcome_unknown = false;
      if (outcome.status == TryOutcome::Status::busy) found_busy = true;
      if (outcome.status == TryOutcome::Status::failed && outcome.failure.code == errc::ambiguous) {
        outcome_unknown = true;
      }
    }
    // A waiting writer that found the lock busy has left a mark that keeps readers out.
    [[nodiscard]] bool may_have_left_something() const {
      const bool marks = request.wait && request.kind == LockKind::read_write && request.mode == Mode::exclusive;
      return outcome_unknown || (marks && found_busy);
    }
  };

  void resume() override {
    start_request();
    tries_->in_flight = true;
    backend_.try_acquire(request(), [tries = tries_, &backend = backend_](TryOutcome outcome) {
      const auto orphans = tries->orphans.lock();
      if (!orphans) return;
      tries->ended(outcome);
      if (tries->contention != nullptr) return tries->contention->tried(std::move(outcome));
      if (outcome.status == TryOutcome::Status::granted) {
        return backend.release(outcome.grant, [weak = tries->orphans](const ReleaseOutcome&) {
          if (const auto still = weak.lock()) still->gone();
        });
      }
      if (tries->may_have_left_something()) backend.abandon(tries->request);
      orphans->gone();
    });
  }

  void tried(TryOutcome outcome) {
    switch (outcome.status) {
      case TryOutcome::Status::granted:
        return granted(std::move(outcome.grant));
      case TryOutcome::Status::failed:
        return failed(outcome.failure);
      case TryOutcome::Status::busy:
        return found_busy(outcome.retry_after);
    }
  }

  void found_busy(std::optional<std::chrono::nanoseconds> retry_after) {
    if (!request().wait) return busy();
    if (!std::exchange(asked_for_watch_, true)) {
      sink().busy();
      watch_ = backend_.wait_for(request(), waker());
      if (watch_) return resume();
    }
    auto pause = random_between(policy_.poll_min, policy_.poll_max, executor());
    // A lock that expires sends no wake-up. A little later than announced, because the service's clock decides.
    if (retry_after && *retry_after < pause) {
      pause = std::min(pause, *retry_after + random_between({}, std::chrono::milliseconds(2), executor()));
    }
    wait(pause);
  }

  void give_up() override {
    tries_->contention = nullptr;
    if (tries_->in_flight) {
      if (const auto orphans = tries_->orphans.lock()) ++orphans->count;
    } else if (tries_->may_have_left_something()) {
      backend_.abandon(request());
    }
  }

  TryBackend& backend_;
  const TryPolicy policy_;
  const std::shared_ptr<Tries> tries_;
  bool asked_for_watch_ = false;
  std::unique_ptr<Watch> watch_;  // until the end of the contention: its callback may end the acquire
};

}  // namespace

TryBackend::TryBackend(BackendHost& host, TryPolicy policy)
    : host_(host), policy_(policy), orphans_(std::make_shared<Orphans>()) {}

TryBackend::~TryBackend() = default;

std::unique_ptr<Watch> TryBackend::wait_for(const LockRequest& request, std::function<void()> changed) {
  return watch(request.kind, request.name, std::move(changed));
}

void TryBackend::abandon(const LockRequest& request) {
  const Grant grant{.name = request.name,
                    .owner = request.owner,
                    .token = {},
                    .valid_until = {},
                    .lease = request.lease,
                    .kind = request.kind,
                    .mode = request.mode};
  release(grant, [](const ReleaseOutcome&) {});  // a release goes on by itself until it is certain
}

std::unique_ptr<Contention> TryBackend::contend(const LockRequest& request, GrantSink& sink) {
  const auto orphans = std::static_pointer_cast<Orphans>(orphans_);
  auto contention = std::make_unique<TryContention>(*this, orphans, host_.executor(), policy_, request, sink);
  contention->start();
  return contention;
}

void TryBackend::close(std::function<void()> done) {
  const auto orphans = std::static_pointer_cast<Orphans>(orphans_);
  if (orphans->count == 0) return done();
  orphans->all_gone = std::move(done);
}

}  // namespace dlock
