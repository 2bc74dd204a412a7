#include "core/client/client_core.hpp"

#include <exception>
#include <functional>
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
    : context_(std::move(context)), main_(std::make_shared<Shard>(context_, context_->engine)) {
  shards_[0] = main_;
  ready_[0] = true;
}

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
      auto backend = factory(*main_, config);
      if (!backend) throw Error(errc::unsupported, "the backend factory returned no backend");
      context_->capabilities = backend->capabilities();
      main_->set_backend(std::move(backend));
    } catch (...) {
      problem = std::current_exception();
    }
    made->set();
  });
  engine().wait(*made);
  if (problem) std::rethrow_exception(problem);
  if (context_->capabilities.immediate) shard_count_ = most_shards;
}

// --- Shards ----------------------------------------------------------------------------------------------------------

const std::shared_ptr<Shard>& ClientCore::shard_of(std::string_view name) {
  const std::size_t index = shard_count_ == 1 ? 0 : std::hash<std::string_view>()(name) % shard_count_;
  if (ready_[index].load(std::memory_order_acquire)) return shards_[index];
  const util::MutexLock lock(shards_mutex_);
  if (!ready_[index].load(std::memory_order_relaxed)) {
    std::shared_ptr<Shard> shard;
    if (!closing_) shard = make_shard();
    // If another cannot be made, for example because no descriptors are left, the first one serves these names for
    // good.
    if (!shard) shard = main_;
    shards_[index] = std::move(shard);
    ready_[index].store(true, std::memory_order_release);
  }
  return shards_[index];
}

std::shared_ptr<Shard> ClientCore::make_shard() {
  std::shared_ptr<engine::Engine> sibling;
  try {
    sibling = engine().sibling();
    if (!sibling) return nullptr;
    auto shard = std::make_shared<Shard>(context_, sibling);
    auto backend = main_->backend().another(*shard);  // until close() begins it stays
    if (!backend) return nullptr;
    // Right here, or, if another thread just takes a turn for the sake of timers that are due, before all other tasks.
    const bool accepted =
        sibling->dispatch([shard, backend = std::move(backend)]() mutable { shard->set_backend(std::move(backend)); });
    if (!accepted) return nullptr;
    return shard;
  } catch (const std::exception&) {
    return nullptr;
  }
}

template <class F>
void ClientCore::for_each_shard(F f) const {
  f(main_);
  for (std::size_t i = 1; i < shard_count_; ++i) {
    if (ready_[i].load(std::memory_order_acquire) && shards_[i] != main_) f(shards_[i]);
  }
}

std::vector<std::shared_ptr<Shard>> ClientCore::shards() const {
  std::vector<std::shared_ptr<Shard>> all;
  for_each_shard([&](const auto& shard) { all.push_back(shard); });
  return all;
}

Stats ClientCore::stats() const noexcept {
  Stats sum;
  for_each_shard([&](const auto& shard) { shard->counters().add_to(sum); });
  context_->notifier->add_to(sum);
  return sum;
}

// --- Calls -----------------------------------------------------------------------------------------------------------

std::shared_ptr<Acquisition> ClientCore::acquire(const Target& target, const AcquireOptions& options,
                                                 AcquireCompletion done) {
  auto acquisition = std::make_shared<Acquisition>(shard_of(target.name), target, options, std::move(done));
  acquisition->begin(engine::IfBusy::leave_task);
  return acquisition;
}

// --- Close -----------------------------------------------------------------------------------------------------------

// What ends a client; shared by tasks of all its engines.
struct ClientCore::Closing : std::enable_shared_from_this<Closing> {
  Closing(std::shared_ptr<ClientContext> of, std::vector<std::shared_ptr<Shard>> all)
      : context(std::move(of)), shards(std::move(all)), shards_left(shards.size()) {}

  void begin() {
    for (const auto& shard : shards) {
      (void)shard->engine().dispatch([self = shared_from_this(), shard] {
        shard->begin_close([self] {
          if (--self->shards_left == 0) self->all_closed();
        });
      });
    }
  }
  void all_closed() {
    closed.set();
    if (timer) context->engine->post([self = shared_from_this()] { self->finish(); });
  }
  void end() const {
    for (const auto& shard : shards) (void)shard->engine().dispatch([shard] { shard->end_close(); });
  }

  // Where nothing may wait: the same as tasks of the first engine.
  void begin_without_waiting() {
    timer.emplace(*context->engine);
    timer->arm(saturating_add(context->engine->now(), context->close_timeout),
               [self = shared_from_this()] { self->finish(); });
    begin();
  }
  void finish() {
    if (std::exchange(finished, true)) return;  // the time limit and the backends' word may both come
    timer->disarm();
    end();
    context->engine->post([self = shared_from_this()] { self->context->engine->stop(); });
  }

  const std::shared_ptr<ClientContext> context;
  const std::vector<std::shared_ptr<Shard>> shards;
  std::atomic<std::size_t> shards_left;
  util::Event closed;
  std::optional<Timer> timer;  // set before begin(), where nothing may wait
  bool finished = false;
};

void ClientCore::close() noexcept {
  if (context_->foreign_process()) {
    keep_forever();
    return;
  }
  {
    const util::MutexLock lock(shards_mutex_);
    closing_ = true;
  }
  const auto closing = std::make_shared<Closing>(context_, shards());
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
    std::shared_ptr<ClientContext> context;
    std::vector<std::shared_ptr<Shard>> shards;
    Kept* next;
  };
  static std::atomic<Kept*> kept{nullptr};
  auto* const one_more = new Kept{context_, shards(), kept.load()};
  while (!kept.compare_exchange_weak(one_more->next, one_more)) {
  }
}

}  // namespace dlock::detail
