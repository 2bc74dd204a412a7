#include "core/client_core.hpp"

#include <exception>
#include <utility>

#include "core/duration_text.hpp"
#include "core/failures.hpp"
#include "util/process.hpp"

namespace dlock::detail {

namespace {

// Some megabytes. 10,000 locks that are taken or renewed in one burst are fewer.
constexpr std::size_t most_events_pending = 16'384;

}  // namespace

std::shared_ptr<ClientCore> ClientCore::create(std::shared_ptr<engine::Engine> engine, Url url,
                                               const ClientOptions& options, const BackendFactory& factory) {
  auto core = std::make_shared<ClientCore>(std::move(engine), url, options);
  const BackendConfig config{.url = std::move(url),
                             .holder = core->holder_,
                             .lease = core->default_lease_,
                             .response_timeout = core->response_timeout_,
                             .connect_timeout = core->connect_timeout_};
  std::exception_ptr problem;
  const auto made = std::make_shared<util::Event>();
  (void)core->engine_->dispatch([&, made] {  // a new engine refuses nothing
    try {
      core->backend_ = factory(*core, config);
      if (!core->backend_) throw Error(errc::unsupported, "the factory of the backend made nothing");
      core->capabilities_ = core->backend_->capabilities();
    } catch (...) {
      problem = std::current_exception();
    }
    made->set();
  });
  core->engine_->wait(*made);
  if (problem) {
    core->engine_->stop();
    std::rethrow_exception(problem);
  }
  return core;
}

ClientCore::ClientCore(std::shared_ptr<engine::Engine> engine, const Url& url, const ClientOptions& options)
    : engine_(std::move(engine)),
      clock_(options.clock),
      observer_(options.observer),
      redacted_url_(url.redacted()),
      holder_(util::host_name() + ":" + std::to_string(util::process_id()) + ":" + options.label),
      default_lease_(options.lease.value()),
      response_timeout_(options.response_timeout.value()),
      connect_timeout_(options.connect_timeout.value()),
      close_timeout_(options.close_timeout.value()),
      fork_generation_(util::fork_generation()) {}

ClientCore::~ClientCore() = default;

bool ClientCore::foreign_process() const noexcept {
  return util::fork_generation() != fork_generation_;
}

// --- Acquire --------------------------------------------------------------------------------------------------------

std::optional<Failure> ClientCore::problem_with_lease(std::chrono::nanoseconds lease) const {
  if (lease >= capabilities_.min_lease && lease <= capabilities_.max_lease) return std::nullopt;
  return Failure{errc::invalid_argument, "lease: " + to_text(lease) + " is outside " +
                                             to_text(capabilities_.min_lease) + ".." +
                                             to_text(capabilities_.max_lease) + ", the bounds of backend \"" +
                                             std::string(capabilities_.backend) + "\""};
}

std::optional<Failure> ClientCore::problem_with(const AcquireOptions& options) const {
  if (options.wait < Duration()) return Failure{errc::invalid_argument, "wait: negative or not a number"};
  return options.lease ? problem_with_lease(options.lease->value()) : std::nullopt;
}

Acquisition::Id ClientCore::acquire(const std::string& name, const AcquireOptions& options, AcquireCompletion done) {
  const auto id = next_acquisition_.fetch_add(1, std::memory_order_relaxed);
  if (foreign_process()) {
    done({nullptr, failures::forked()});
  } else if (auto problem = problem_with(options)) {
    done({nullptr, std::move(*problem)});
  } else {
    const bool accepted = engine_->dispatch(
        [this, self = shared_from_this(), id, name, options, done] { start_acquire(id, name, options, done); });
    if (!accepted) done({nullptr, failures::closed()});
  }
  return id;
}

void ClientCore::start_acquire(Acquisition::Id id, const std::string& name, const AcquireOptions& options,
                               AcquireCompletion done) {
  if (closing_) {
    done({nullptr, failures::closed()});
    return;
  }
  LockRequest request{.name = name,
                      .owner = new_owner_id(),
                      .holder = holder_,
                      .lease = options.lease ? options.lease->value() : default_lease_,
                      .wait = options.wait > Duration()};
  add(counters_.waiting);
  auto acquisition = std::make_unique<Acquisition>(*this, id, std::move(request), options, std::move(done));
  Acquisition& started = *acquisition;
  if (!started.start()) acquisitions_.emplace(id, std::move(acquisition));
}

void ClientCore::cancel_acquire(Acquisition::Id id) {
  // Never inline: the caller may be inside anything, a stop_source of the program's for instance.
  engine_->post([weak = weak_from_this(), id] {
    const auto core = weak.lock();
    if (!core) return;
    const auto found = core->acquisitions_.find(id);
    if (found != core->acquisitions_.end()) found->second->abort({errc::cancelled, "the wait was cancelled"});
  });
}

void ClientCore::check_acquire_deadline(Acquisition::Id id) {
  const auto found = acquisitions_.find(id);
  if (found != acquisitions_.end()) found->second->deadline_passed();
}

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

void ClientCore::forget_acquire_later(Acquisition::Id id) {
  engine_->post([weak = weak_from_this(), id] {
    if (const auto core = weak.lock()) core->acquisitions_.erase(id);
  });
}

void ClientCore::restart_acquire_later(Acquisition::Id id) {
  engine_->post([weak = weak_from_this(), id] {
    const auto core = weak.lock();
    if (!core) return;
    const auto found = core->acquisitions_.find(id);
    if (found != core->acquisitions_.end()) found->second->restart();
  });
}

void ClientCore::release_unwanted(const Grant& grant) {
  release_in_backend(grant, [](const ReleaseOutcome&) {});  // nobody to tell; the backend goes on by itself
}

// --- The rest -------------------------------------------------------------------------------------------------------

void ClientCore::with_backend(std::function<void(Backend*)> f) {
  if (foreign_process()) {
    f(nullptr);
    return;
  }
  const bool accepted =
      engine_->dispatch([this, self = shared_from_this(), f] { f(closing_ ? nullptr : backend_.get()); });
  if (!accepted) f(nullptr);
}

void ClientCore::connection(ConnectionEvent event) {
  if (event.state == ConnectionEvent::State::reconnecting) {
    add(counters_.reconnects);
    interrupted_ = true;
  } else if (std::exchange(interrupted_, false)) {
    // Not from inside: the backend is just telling.
    engine_->post([weak = weak_from_this()] {
      if (const auto core = weak.lock()) core->look_after_reconnection();
    });
  }
  tell([event = std::move(event)](Observer& observer) { observer.connection(event); });
}

void ClientCore::warn(WarningEvent event) {
  tell([event = std::move(event)](Observer& observer) { observer.warning(event); });
}

OwnerId ClientCore::new_owner_id() {
  const auto high = engine_->random();
  return {high, engine_->random()};
}

void ClientCore::notify(std::function<void()> user_code, engine::UserCode kind) {
  // Whoever runs it is also the one that destroys what it captured.
  const auto once = std::make_shared<std::function<void()>>(std::move(user_code));
  const auto run = [self = shared_from_this(), once] {
    const auto code = std::exchange(*once, nullptr);
    self->run_user_code(code);
  };
  if (foreign_process() || !engine_->notify(run, kind)) run();
}

void ClientCore::tell(std::function<void(Observer&)> event) {
  if (!observed()) return;
  if (events_pending_.fetch_add(1) >= most_events_pending) {
    --events_pending_;
    add(counters_.events_dropped);
    add(events_dropped_untold_);
    return;
  }
  notify([this, event = std::move(event)] {
    --events_pending_;
    event(*observer_);
    const auto dropped = events_dropped_untold_.exchange(0);
    if (dropped > 0) observer_->warning({"", failures::events_dropped(dropped)});
  });
}

void ClientCore::run_user_code(const std::function<void()>& user_code) noexcept {
  std::string what;
  try {
    user_code();
    return;
  } catch (const std::exception& e) {
    what = e.what();
  } catch (...) {
    what = "an exception of unknown type";
  }
  add(counters_.callback_exceptions);
  if (!observer_) return;
  try {
    observer_->warning({"", {errc::invalid_argument, "a handler of the program threw: " + what}});
  } catch (...) {
    add(counters_.callback_exceptions);  // the observer itself throws: there is nobody left to tell
  }
}

// --- Close ----------------------------------------------------------------------------------------------------------

void ClientCore::close() noexcept {
  if (foreign_process()) {
    keep_forever();
    return;
  }
  if (engine_->must_not_block()) {
    close_on_engine_thread();
    return;
  }
  const auto closed = std::make_shared<util::Event>();
  (void)engine_->dispatch([this, self = shared_from_this(), closed] { begin_close([closed] { closed->set(); }); });
  engine_->wait(*closed, close_timeout_);
  (void)engine_->dispatch([this, self = shared_from_this()] { backend_.reset(); });
  engine_->stop();
}

void ClientCore::keep_forever() {
  // The engine's thread is in the parent, and its mutex may be locked for good. Everything stays as it is, reachable.
  struct Kept {
    std::shared_ptr<ClientCore> core;
    Kept* next;
  };
  static std::atomic<Kept*> kept{nullptr};
  auto* const one_more = new Kept{shared_from_this(), kept.load()};
  while (!kept.compare_exchange_weak(one_more->next, one_more)) {
  }
}

void ClientCore::close_on_engine_thread() {
  (void)engine_->dispatch([this, self = shared_from_this()] {
    const auto timer = std::make_shared<Timer>(*engine_);
    const auto finish = [this, self, timer, finished = std::make_shared<bool>(false)] {
      if (std::exchange(*finished, true)) return;  // the time limit and the backend's word may both come
      timer->disarm();
      engine_->post([this, self] {
        closed_ = nullptr;  // if releases are still under way it holds us, through `finish`
        backend_.reset();
        engine_->stop();
      });
    };
    timer->arm(saturating_add(engine_->now(), close_timeout_), finish);
    begin_close(finish);
  });
}

void ClientCore::begin_close(std::function<void()> closed) {
  closing_ = true;
  auto acquisitions = std::exchange(acquisitions_, {});
  for (const auto& [id, acquisition] : acquisitions) acquisition->abort(failures::closed());
  acquisitions.clear();  // gives up the contentions, before the backend is told to close
  const auto held = std::exchange(held_, {});
  for (const auto& [owner, lease] : held) {
    const bool in_backend = lease->in_backend();
    lease->set_gone_from_backend();
    lease_lost(*lease, {errc::closed, "the client was closed while it held lock \"" + lease->grant().name + "\""});
    if (in_backend) release_unwanted(lease->grant());
  }
  closed_ = std::move(closed);  // only now: a release that is answered at once must not end what others still need
  close_backend_when_released();
}

void ClientCore::close_backend_when_released() {
  if (!closed_ || pending_releases_ != 0) return;
  if (!backend_) return;  // a release that was answered by the backend's destructor, or later still
  backend_->close(std::exchange(closed_, nullptr));
}

}  // namespace dlock::detail
