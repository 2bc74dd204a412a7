#include "core/client/client_core.hpp"

#include <atomic>
#include <exception>
#include <optional>
#include <utility>

#include "core/client/failures.hpp"
#include "core/client/leader_observer.hpp"

namespace dlock::detail {

namespace {

// In a child made by fork(), the engine has no thread, and its mutex may stay locked. So the client is never destroyed,
// but stays reachable.
void keep_forever(std::shared_ptr<ClientCore> core) {
  struct Kept {
    std::shared_ptr<ClientCore> core;
    Kept* next;
  };
  static std::atomic<Kept*> kept{nullptr};
  auto* const one_more = new Kept{std::move(core), kept.load()};
  while (!kept.compare_exchange_weak(one_more->next, one_more)) {
  }
}

}  // namespace

// --- Making ----------------------------------------------------------------------------------------------------------

std::shared_ptr<ClientCore> ClientCore::create(std::shared_ptr<engine::Engine> engine, Url url,
                                               const ClientOptions& options, const BackendFactory& factory) {
  auto core = std::make_shared<ClientCore>(std::make_shared<ClientContext>(std::move(engine), url, options));
  try {
    core->make_backend(std::move(url), factory);
  } catch (...) {
    core->engine().stop();
    throw;
  }
  return core;
}

ClientCore::ClientCore(std::shared_ptr<ClientContext> context) : context_(std::move(context)) {}

ClientCore::~ClientCore() = default;

void ClientCore::make_backend(Url url, const BackendFactory& factory) {
  const BackendConfig config{.url = std::move(url),
                             .holder = context_->holder,
                             .lease = context_->lease,
                             .response_timeout = context_->response_timeout,
                             .connect_timeout = context_->connect_timeout};
  std::exception_ptr problem;
  const auto made = std::make_shared<util::Event>();
  (void)engine().dispatch([&, made] {  // a new engine refuses nothing
    try {
      auto backend = factory(*this, config);
      if (!backend) throw Error(errc::unsupported, "the backend factory returned no backend");
      context_->capabilities = backend->capabilities();
      backend_ = std::move(backend);
    } catch (...) {
      problem = std::current_exception();
    }
    made->set();
  });
  engine().wait(*made);
  if (problem) std::rethrow_exception(problem);
}

Stats ClientCore::stats() const noexcept {
  Stats stats;
  counters_.add_to(stats);
  notifier().add_to(stats);
  return stats;
}

// --- Acquires --------------------------------------------------------------------------------------------------------

void ClientCore::acquire_ended(const AcquireResult& result, bool waited) noexcept {
  subtract(counters_.waiting);
  const auto& code = result.failure.code;
  if (result.lease) {
    add(counters_.acquired);
  } else if (code == errc::timed_out) {
    add(waited ? counters_.timed_out : counters_.busy);
  } else if (code == errc::cancelled) {
    add(counters_.cancelled);
  } else {
    add(counters_.failed);
  }
}

void ClientCore::keep(std::shared_ptr<Acquisition> acquisition) {
  acquisition->set_number(++last_acquisition_);
  acquisitions_.emplace(last_acquisition_, std::move(acquisition));
}

void ClientCore::forget(Acquisition& acquisition) noexcept {
  acquisition.end_contention();
  acquisitions_.erase(acquisition.number());
}

void ClientCore::forget_later(Acquisition& acquisition) {
  engine().post([weak = weak_from_this(), forgotten = acquisition.shared_from_this()] {
    if (const auto core = weak.lock()) core->forget(*forgotten);
  });
}

// --- Observers of elections ------------------------------------------------------------------------------------------

void ClientCore::keep(std::shared_ptr<LeaderObserver> observer) {
  LeaderObserver* const key = observer.get();
  observers_.emplace(key, std::move(observer));
}

void ClientCore::forget(LeaderObserver& observer) noexcept {
  observers_.erase(&observer);
}

// --- The backend's host ----------------------------------------------------------------------------------------------

void ClientCore::connection(ConnectionEvent event) {
  if (event.state == ConnectionEvent::State::reconnecting) {
    add(counters_.reconnects);
    interrupted_ = true;
  } else if (std::exchange(interrupted_, false)) {
    // In a later task: the backend is on the call stack.
    engine().post([weak = weak_from_this()] {
      if (const auto core = weak.lock()) core->leases_.reconnected();
    });
  }
  notifier().tell([event = std::move(event)](Observer& observer) { observer.connection(event); });
}

void ClientCore::warn(WarningEvent event) {
  notifier().tell([event = std::move(event)](Observer& observer) { observer.warning(event); });
}

OwnerId ClientCore::new_owner_id() {
  const auto high = engine().random();
  return {high, engine().random()};
}

// --- Close -----------------------------------------------------------------------------------------------------------

void ClientCore::begin_close(Task closed) {
  closing_.store(true, std::memory_order_release);
  const auto acquisitions = std::exchange(acquisitions_, {});
  for (const auto& [number, acquisition] : acquisitions) acquisition->abort(failures::closed());
  // Before Backend::close().
  for (const auto& [number, acquisition] : acquisitions) acquisition->end_contention();
  const auto observers = std::exchange(observers_, {});
  for (const auto& [key, observer] : observers) observer->end();
  leases_.close();
  closed_ = std::move(closed);  // only now: a release that is answered at once must not end what others still need
  release_answered();
}

void ClientCore::release_answered() {
  if (!closed_ || leases_.releasing()) return;
  backend_->close([closed = std::make_shared<Task>(std::move(closed_))] { (*closed)(); });
}

void ClientCore::end_close() noexcept {
  closed_ = nullptr;  // if releases are still in progress, it may own this client
  backend_.reset();
  leases_.end_releases();
}

// Ends a client. Tasks of its engine share it.
struct ClientCore::Closing : std::enable_shared_from_this<Closing> {
  explicit Closing(std::shared_ptr<ClientCore> of) : core(std::move(of)) {}

  void begin() {
    (void)core->engine().dispatch([self = shared_from_this()] {
      self->core->begin_close([self] {
        self->closed.set();
        if (self->timer) self->core->engine().post([self] { self->finish(); });
      });
    });
  }
  void end() const {
    (void)core->engine().dispatch([core = core] { core->end_close(); });
  }

  // If the caller must not wait: every step as a task.
  void begin_without_waiting() {
    engine::Engine& engine = core->engine();
    timer.emplace(engine);
    timer->arm(saturating_add(engine.now(), core->context().close_timeout),
               [self = shared_from_this()] { self->finish(); });
    begin();
  }
  void finish() {
    if (std::exchange(finished, true)) return;  // the time limit and the backend's answer may both come
    timer->disarm();
    end();
    core->engine().post([self = shared_from_this()] { self->core->engine().stop(); });
  }

  const std::shared_ptr<ClientCore> core;
  util::Event closed;
  std::optional<Timer> timer;  // set before begin() if nothing may wait
  bool finished = false;
};

void ClientCore::close() noexcept {
  if (context_->foreign_process()) return keep_forever(shared_from_this());
  const auto closing = std::make_shared<Closing>(shared_from_this());
  if (engine().must_not_block()) {
    (void)engine().dispatch([closing] { closing->begin_without_waiting(); });
    return;
  }
  closing->begin();
  engine().wait(closing->closed, context_->close_timeout);
  closing->end();
  engine().stop();
}

}  // namespace dlock::detail
