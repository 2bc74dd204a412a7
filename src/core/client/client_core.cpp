#include "core/client/client_core.hpp"

#include <atomic>
#include <exception>
#include <optional>
#include <utility>

namespace dlock::detail {

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

ClientCore::ClientCore(std::shared_ptr<ClientContext> context)
    : context_(std::move(context)), shard_(std::make_shared<Shard>(context_)) {}

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
      auto backend = factory(*shard_, config);
      if (!backend) throw Error(errc::unsupported, "the backend factory returned no backend");
      context_->capabilities = backend->capabilities();
      shard_->set_backend(std::move(backend));
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
  shard_->counters().add_to(stats);
  context_->notifier->add_to(stats);
  return stats;
}

// --- Calls -----------------------------------------------------------------------------------------------------------

std::shared_ptr<Acquisition> ClientCore::acquire(const Target& target, const AcquireOptions& options,
                                                 AcquireCompletion done) {
  auto acquisition = std::make_shared<Acquisition>(shard_, target, options, std::move(done));
  acquisition->begin(engine::IfBusy::leave_task);
  return acquisition;
}

// --- Close -----------------------------------------------------------------------------------------------------------

// Ends a client. Tasks of its engine share it.
struct ClientCore::Closing : std::enable_shared_from_this<Closing> {
  explicit Closing(std::shared_ptr<Shard> of) : shard(std::move(of)) {}

  void begin() {
    (void)shard->engine().dispatch([self = shared_from_this()] {
      self->shard->begin_close([self] {
        self->closed.set();
        if (self->timer) self->shard->engine().post([self] { self->finish(); });
      });
    });
  }
  void end() const {
    (void)shard->engine().dispatch([shard = shard] { shard->end_close(); });
  }

  // If nothing may wait: the whole of it as tasks.
  void begin_without_waiting() {
    engine::Engine& engine = shard->engine();
    timer.emplace(engine);
    timer->arm(saturating_add(engine.now(), shard->context().close_timeout),
               [self = shared_from_this()] { self->finish(); });
    begin();
  }
  void finish() {
    if (std::exchange(finished, true)) return;  // the time limit and the backend's answer may both come
    timer->disarm();
    end();
    shard->engine().post([self = shared_from_this()] { self->shard->engine().stop(); });
  }

  const std::shared_ptr<Shard> shard;
  util::Event closed;
  std::optional<Timer> timer;  // set before begin() if nothing may wait
  bool finished = false;
};

void ClientCore::close() noexcept {
  if (context_->foreign_process()) {
    keep_forever();
    return;
  }
  const auto closing = std::make_shared<Closing>(shard_);
  if (engine().must_not_block()) {
    (void)engine().dispatch([closing] { closing->begin_without_waiting(); });
    return;
  }
  closing->begin();
  engine().wait(closing->closed, context_->close_timeout);
  closing->end();
  engine().stop();
}

void ClientCore::keep_forever() {
  // The engine's thread is in the parent, and its mutex may be locked for good. Everything stays as it is, reachable.
  struct Kept {
    std::shared_ptr<Shard> shard;
    Kept* next;
  };
  static std::atomic<Kept*> kept{nullptr};
  auto* const one_more = new Kept{shard_, kept.load()};
  while (!kept.compare_exchange_weak(one_more->next, one_more)) {
  }
}

}  // namespace dlock::detail
