#include "backends/zookeeper/strategies/ephemeral_watch.hpp"

#include <utility>

namespace dlock::zookeeper {

namespace {

// Where no watch can be had.
constexpr std::chrono::nanoseconds unwatched_min = std::chrono::seconds(1);
constexpr std::chrono::nanoseconds unwatched_max = std::chrono::seconds(2);

}  // namespace

EphemeralWatch::EphemeralWatch(Ephemeral& client, std::string path, std::function<void()> changed)
    : client_(client), path_(std::move(path)), changed_(std::move(changed)), timer_(client.host_.executor()) {
  client_.watching_.insert(this);
  set();
}

EphemeralWatch::~EphemeralWatch() {
  client_.watching_.erase(this);
}

void EphemeralWatch::session_ready() {
  // Whatever happened meanwhile.
  tell_and_set();
}

// The next try is sent behind this, so it sees what the watch would not tell.
void EphemeralWatch::set() {
  timer_.disarm();
  interest_.reset();
  if (!client_.requests_.ready()) return;  // session_ready() comes back
  interest_ = client_.watches_.watch(Watches::Kind::data, path_, [this] { tell_and_set(); });
  if (!interest_) return set_later(random_between(unwatched_min, unwatched_max, client_.host_.executor()));
  client_.requests_.get(path_, interest_.get(),
                        lifetime_.guard([this, round = ++round_](const Outcome& outcome, const Handle::Node&) {
                          if (round == round_) answered(outcome);
                        }));
}

void EphemeralWatch::answered(const Outcome& outcome) {
  switch (outcome.problem) {
    case Problem::none:
      backoff_.reset();
      return;
    case Problem::no_node:
      // Nobody is there now. Whoever tries will find out; should it not help, not again at once.
      interest_.reset();
      set_later(backoff_.next(client_.host_.executor()));
      return changed_();
    default:
      interest_.reset();
      return set_later(backoff_.next(client_.host_.executor()));
  }
}

void EphemeralWatch::tell_and_set() {
  const auto life = lifetime_.watch();
  changed_();
  if (!life.over()) set();
}

void EphemeralWatch::set_later(std::chrono::nanoseconds pause) {
  timer_.arm(saturating_add(client_.host_.executor().now(), pause), [this] { tell_and_set(); });
}

}  // namespace dlock::zookeeper
