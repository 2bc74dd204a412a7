#include "backends/redis/sentinel/sentinel_wire.hpp"

#include <utility>

namespace dlock::redis {

SentinelWire::SentinelWire(Executor& executor, const Options& options, Events& events,
                           std::shared_ptr<Sentinels> sentinels, const WireFactory& wires)
    : executor_(executor), at_(options), events_(events), sentinels_(std::move(sentinels)), wires_(wires) {
  at_.sentinel.reset();
}

SentinelWire::~SentinelWire() {
  sentinels_->unfollow(*this);
}

void SentinelWire::open(TimePoint deadline) {
  sentinels_->locate([this, deadline, life = lifetime_.watch()](const Result<common::Host>& master) {
    if (!life.over()) located(master, deadline);
  });
}

void SentinelWire::located(const Result<common::Host>& master, TimePoint deadline) {
  if (!master.ok()) return events_.closed(master.failure());
  at_.host = master.value();
  sentinels_->follow(*this);
  wire_ = wires_(executor_, at_, events_);
  wire_->open(deadline);
}

void SentinelWire::discard() noexcept {
  if (wire_) wire_->discard();
}

void SentinelWire::master_moved(const common::Host& to) {
  if (to == at_.host) return;
  wire_->discard();
  events_.closed(
      {errc::unavailable, at_.endpoint() + ": the sentinels say that " + to.to_string() + " is the master now"});
}

WireFactory sentinel_wires(std::shared_ptr<Sentinels> sentinels, WireFactory wires) {
  return [sentinels = std::move(sentinels), wires = std::move(wires)](Executor& executor, const Options& options,
                                                                      Wire::Events& events) {
    return std::make_unique<SentinelWire>(executor, options, events, sentinels, wires);
  };
}

}  // namespace dlock::redis
