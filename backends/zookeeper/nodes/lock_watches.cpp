#include "backends/zookeeper/nodes/lock_watches.hpp"

#include <cstdint>
#include <utility>

#include <dlock/spi/backoff.hpp>
#include <dlock/spi/lifetime.hpp>

#include "backends/common/for_each_still_in.hpp"

namespace dlock::zookeeper {

namespace {

// Where no watch can be set.
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

  // Whatever happened meanwhile.
  void session_ready() { notify_and_set(); }

 private:
  void set();
  void query();
  void wait_for_node();
  void on_reply(const Outcome& outcome);
  void notify_and_set();
  void set_later(std::chrono::nanoseconds pause);
  // A watch in place of the one before; false: none can be set, and it is tried again later.
  [[nodiscard]] bool new_interest(Watches::Kind kind);
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
  if (all_.requests_.ready()) return query();
  all_.requests_.session().want();  // session_ready() comes back
}

bool LockWatches::LockWatch::new_interest(Watches::Kind kind) {
  interest_ = all_.watches_.watch(kind, path_, [this] { notify_and_set(); });
  if (!interest_) set_later(random_between(unwatched_min, unwatched_max, all_.executor_));
  return interest_ != nullptr;
}

void LockWatches::LockWatch::query() {
  switch (what_) {
    case What::node:
      if (!new_interest(Watches::Kind::data)) return;
      return all_.requests_.get(path_, interest_.get(), guarded([this](const Outcome& outcome) { on_reply(outcome); }));
    case What::presence:
      return wait_for_node();
    case What::queue:
      if (!new_interest(Watches::Kind::children)) return;
      return all_.requests_.children(path_, interest_.get(), guarded([this](const Outcome& outcome) {
                                       const bool missing = outcome.problem == Problem::no_node;
                                       if (missing && all_.requests_.ready()) return wait_for_node();
                                       on_reply(outcome);
                                     }));
  }
}

void LockWatches::LockWatch::wait_for_node() {
  if (!new_interest(Watches::Kind::presence)) return;
  all_.requests_.exists(path_, *interest_, guarded([this](const Outcome& outcome) {
                          const bool missing = outcome.problem == Problem::no_node;
                          if (!missing && outcome.problem != Problem::none) return on_reply(outcome);
                          backoff_.reset();
                          if (what_ != What::queue) return;
                          // It came meanwhile, or the watch has come into effect after whatever was asked meanwhile.
                          if (!missing) return notify_and_set();
                          changed_();
                        }));
}

void LockWatches::LockWatch::on_reply(const Outcome& outcome) {
  switch (outcome.problem) {
    case Problem::none:
      backoff_.reset();
      return;
    case Problem::no_node:
      // No node is there now. A try will find out; should it not help, not again at once.
      interest_.reset();
      set_later(backoff_.next(all_.executor_));
      return changed_();
    default:
      interest_.reset();
      return set_later(backoff_.next(all_.executor_));
  }
}

// A waiter for the node to go tries first: the watch that follows is on the result. A watcher of every change asks
// behind the new watch.
void LockWatches::LockWatch::notify_and_set() {
  if (what_ != What::node) {
    set();
    return changed_();
  }
  const auto life = lifetime_.watch();
  changed_();
  if (!life.over()) set();
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
