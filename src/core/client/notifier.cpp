#include "core/client/notifier.hpp"

#include <exception>
#include <string>
#include <utility>

#include "core/client/failures.hpp"
#include "util/process.hpp"

namespace dlock::detail {

Notifier::Notifier(std::shared_ptr<engine::Engine> engine, std::shared_ptr<Observer> observer)
    : engine_(std::move(engine)), observer_(std::move(observer)), fork_generation_(util::fork_generation()) {}

void Notifier::tell(Callback<Observer&> event) {
  if (!observed()) return;
  const bool taken = run(
      [self = shared_from_this(), event = std::move(event)] {
        self->guarded([&] { event(*self->observer_); });
        self->tell_of_dropped_events();
      },
      engine::UserCode::event);
  if (taken) return;
  add(events_dropped_);
  add(events_dropped_untold_);
}

void Notifier::complete(Task handler) {
  (void)run(
      [self = shared_from_this(), handler = std::move(handler)]() mutable {
        // The thread that runs it also destroys what it captured.
        const Task once = std::move(handler);
        self->guarded(once);
      },
      engine::UserCode::completion);  // never refused
}

void Notifier::signal_loss(Task signal) {
  (void)run(std::move(signal), engine::UserCode::loss_signal);  // never refused
}

bool Notifier::run(Task code, engine::UserCode kind) {
  using engine::Notified;
  // A child made by fork() has no engine thread.
  const bool here = util::fork_generation() != fork_generation_;
  const Notified answer = here ? Notified::stopped : engine_->notify(std::move(code), kind);
  if (answer == Notified::stopped) code();  // NOLINT(bugprone-use-after-move): moved from only if accepted
  return answer != Notified::refused;
}

void Notifier::tell_of_dropped_events() {
  const auto dropped = events_dropped_untold_.exchange(0);
  if (dropped > 0) guarded([&] { observer_->warning({"", failures::events_dropped(dropped)}); });
}

template <class Code>
void Notifier::guarded(const Code& code) noexcept {
  std::string what;
  try {
    code();
    return;
  } catch (const std::exception& e) {
    what = e.what();
  } catch (...) {
    what = "an exception of unknown type";
  }
  add(exceptions_);
  if (!observer_) return;
  try {
    observer_->warning({"", {errc::invalid_argument, "a handler of the program threw: " + what}});
  } catch (...) {
    add(exceptions_);  // the observer itself throws: nothing is left to report to
  }
}

void Notifier::add_to(Stats& stats) const noexcept {
  stats.callback_exceptions += exceptions_.load(std::memory_order_relaxed);
  stats.events_dropped += events_dropped_.load(std::memory_order_relaxed);
}

}  // namespace dlock::detail
