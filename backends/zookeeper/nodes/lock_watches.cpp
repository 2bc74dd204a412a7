#include "backends/zookeeper/nodes/lock_watches.hpp"

#include <cstdint>
#include <utility>

#include <dlock/spi/backoff.hpp>
#include <dlock/spi/lifetime.hpp>

#include "backends/common/for_each_still_in.hpp"

namespace dlock::zookeeper {

namespace {

// If no watch can be set.
constexpr std::chrono::nanoseconds unwatched_min = std::chrono::seconds(1);
constexpr std::chrono::nanoseconds unwatched_max = std::chrono::seconds(2);

}  // namespace

class LockWatches::LockWatch final : public Watch {
 public:
  LockWatch(LockWatches& all, What what, std::string path, std::function<void()> changed)
      : all_(all),
        what_(what),
        path_(std::move(path)),
        changed_(std::move(changed)),
        id_(++all.last_id_),
        timer_(all.executor_) {
    all_.watching_.emplace(id_, this);
    set();
  }
  ~LockWatch() override { all_.watching_.erase(id_); }

  // The node may have changed meanwhile.
  void session_ready() { notify_and_set(); }

 private:
  void set();
  void query(Watches::Kind kind);
  void on_reply(Watches::Kind kind, const Outcome& outcome);
  void notify_and_set();
  void set_later(std::chrono::nanoseconds pause);
  template <class F>
  [[nodiscard]] auto guarded(F f) {
    return lifetime_.guard([this, round = ++round_, f = std::move(f)](const Outcome& outcome, const auto&...) {
      if (round == round_) f(outcome);
    });
  }

  LockWatches& all_;
  const What what_;
  const std::string path_;
  const std::function<void()> changed_;
  const std::uint64_t id_;
  std::unique_ptr<Watches::Interest> interest_;
  std::uint64_t round_ = 0;
  Backoff backoff_{std::chrono::seconds(2)};
  Timer timer_;
  Lifetime lifetime_;
};

void LockWatches::LockWatch::set() {
  timer_.disarm();
  interest_.reset();
  if (!all_.requests_.ready()) return all_.requests_.session().want();  // until session_ready()
  query(what_ == What::queue ? Watches::Kind::children : Watches::Kind::presence);
}

void LockWatches::LockWatch::query(Watches::Kind kind) {
  interest_ = all_.watches_.watch(kind, path_, [this] { notify_and_set(); });
  if (!interest_) return set_later(random_between(unwatched_min, unwatched_max, all_.executor_));
  const auto answered = guarded([this, kind](const Outcome& outcome) { on_reply(kind, outcome); });
  if (kind == Watches::Kind::children) return all_.requests_.children(path_, interest_.get(), answered);
  all_.requests_.exists(path_, *interest_, answered);
}

void LockWatches::LockWatch::on_reply(Watches::Kind kind, const Outcome& outcome) {
  const bool missing = outcome.problem == Problem::no_node;
  if (!missing && outcome.problem != Problem::none) {
    interest_.reset();
    return set_later(backoff_.next(all_.executor_));
  }
  if (missing && kind == Watches::Kind::children) {
    return all_.requests_.ready() ? query(Watches::Kind::presence) : set();
  }
  backoff_.reset();
  if (what_ != What::queue || kind != Watches::Kind::presence) return;
  // The node was created meanwhile; or the watch was set after queries of the user, which may have missed a change.
  missing ? changed_() : notify_and_set();
}

// Sets the watch first, so that a query that changed_() sends follows it.
void LockWatches::LockWatch::notify_and_set() {
  set();
  changed_();
}

void LockWatches::LockWatch::set_later(std::chrono::nanoseconds pause) {
  timer_.arm(saturating_add(all_.executor_.now(), pause), [this] { notify_and_set(); });
}

std::unique_ptr<Watch> LockWatches::watch(What what, std::string path, std::function<void()> changed) {
  return std::make_unique<LockWatch>(*this, what, std::move(path), std::move(changed));
}

void LockWatches::session_ready() {
  common::for_each_still_in(watching_, [](auto, LockWatch* each) { each->session_ready(); });
}

}  // namespace dlock::zookeeper
