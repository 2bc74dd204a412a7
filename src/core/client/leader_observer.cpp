#include "core/client/leader_observer.hpp"

#include <chrono>
#include <cstdint>
#include <utility>

#include "core/client/client_core.hpp"

namespace dlock::detail {

namespace {

// The pause between two queries if no event reports a change: from half of this to all of it, at random.
constexpr std::chrono::nanoseconds interval = std::chrono::seconds(1);

}  // namespace

std::optional<Leader> leader_of(LockInfo info) {
  if (!info.held) return std::nullopt;
  return Leader{std::move(info.value), std::move(info.holder), info.token};
}

LeaderObserver::LeaderObserver(std::shared_ptr<ClientCore> core, std::string name, Handler handler)
    : core_(std::move(core)), name_(std::move(name)), timer_(core_->executor()), handler_(std::move(handler)) {}

// --- Any thread ------------------------------------------------------------------------------------------------------

void LeaderObserver::begin() {
  if (core_->context().foreign_process()) return;
  (void)core_->engine().dispatch([self = shared_from_this()] { self->start(); });  // refused: the client is closed
}

void LeaderObserver::stop() noexcept {
  if (core_->context().foreign_process()) return;
  (void)core_->engine().dispatch([self = shared_from_this()] { self->end(); });  // refused: it has ended
  util::Event returned;
  {
    const util::MutexLock lock(mutex_);
    stopped_ = true;
    if (running_) {
      // Inside the handler, which returned() destroys.
      if (core_->engine().must_not_block()) return;
      returned_ = &returned;
    } else {
      returned.set();
    }
  }
  core_->engine().wait(returned);
  handler_ = nullptr;  // here: its captures must not be destroyed inside a task
}

// The handler is called on the engine thread only, and never twice at the same time.
void LeaderObserver::deliver() {
  std::optional<Leader> leader;
  {
    const util::MutexLock lock(mutex_);
    due_ = false;
    if (stopped_) return;
    running_ = true;
    leader = std::move(newest_);
  }
  struct Return {
    LeaderObserver& observer;
    ~Return() { observer.returned(); }
  };
  const Return at_the_end{*this};
  handler_(leader);
}

void LeaderObserver::returned() noexcept {
  util::Event* waiting = nullptr;
  bool unwanted = false;
  {
    const util::MutexLock lock(mutex_);
    running_ = false;
    waiting = returned_;
    unwanted = stopped_ && waiting == nullptr;
  }
  if (unwanted) handler_ = nullptr;
  if (waiting != nullptr) waiting->set();
}

// --- In tasks --------------------------------------------------------------------------------------------------------

void LeaderObserver::start() {
  if (ended_ || core_->closing()) return;
  core_->keep(shared_from_this());
  watch_ = core_->backend().watch(LockKind::election, name_, [weak = weak_from_this()] {
    if (const auto self = weak.lock()) self->ask();
  });
  ask();
}

void LeaderObserver::end() noexcept {
  ended_ = true;
  timer_.disarm();
  watch_.reset();
  core_->forget(*this);
}

void LeaderObserver::ask() {
  if (ended_) return;
  if (asking_) {
    changed_meanwhile_ = true;
    return;
  }
  asking_ = true;
  timer_.disarm();
  core_->backend().inspect(LockKind::election, name_, [weak = weak_from_this()](const Result<LockInfo>& answer) {
    if (const auto self = weak.lock()) self->answered(answer);
  });
}

void LeaderObserver::answered(const Result<LockInfo>& answer) {
  asking_ = false;
  if (ended_) return;
  if (answer.ok()) {
    tell(leader_of(answer.value()));
  } else if (!silent_) {
    core_->warn({name_, answer.failure()});
  }
  silent_ = !answer.ok();
  // At once only after an answer, so that failures cause no storm of queries.
  if (std::exchange(changed_meanwhile_, false) && !silent_) {
    core_->executor().post([weak = weak_from_this()] {
      if (const auto self = weak.lock()) self->ask();
    });
    return;
  }
  const auto half = static_cast<std::uint64_t>(interval.count() / 2);
  const std::chrono::nanoseconds pause(half + core_->executor().random() % half);
  timer_.arm(saturating_add(core_->executor().now(), pause), [this] { ask(); });
}

void LeaderObserver::tell(std::optional<Leader> leader) {
  if (told_ && *told_ == leader) return;
  told_ = leader;
  {
    const util::MutexLock lock(mutex_);
    newest_ = std::move(leader);
    if (std::exchange(due_, true)) return;
  }
  core_->notifier().complete([self = shared_from_this()] { self->deliver(); });
}

}  // namespace dlock::detail
