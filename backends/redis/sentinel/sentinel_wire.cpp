#include "backends/redis/sentinel/sentinel_wire.hpp"

#include <utility>

#include <dlock/spi/lifetime.hpp>

namespace dlock::redis {

namespace {

class SentinelWire final : public Wire {
 public:
  SentinelWire(Executor& executor, const Options& options, Events& events, std::shared_ptr<Sentinels> sentinels,
               WireFactory wires)
      : executor_(executor), at_(options), events_(events), sentinels_(std::move(sentinels)), wires_(std::move(wires)) {
    at_.sentinel.reset();
  }
  ~SentinelWire() override { sentinels_->unfollow(this); }

  void open(TimePoint deadline) override {
    sentinels_->locate(lifetime_.guard([this, deadline](const Result<common::Host>& master) {
      if (!master.ok()) return events_.closed(master.failure());
      at_.host = master.value();
      sentinels_->follow(this, [this](const common::Host& to) {
        if (to == at_.host) return;
        wire_->discard();
        events_.closed(
            {errc::unavailable, at_.endpoint() + ": the sentinels say that " + to.to_string() + " is the master now"});
      });
      wire_ = wires_(executor_, at_, events_);
      wire_->open(deadline);
    }));
  }
  void write(std::string_view bytes) override { wire_->write(bytes); }
  void flush() override { wire_->flush(); }
  void receive() override { wire_->receive(); }
  void discard() noexcept override {
    if (wire_) wire_->discard();
  }
  [[nodiscard]] bool tls_unanswered() const noexcept override { return wire_ && wire_->tls_unanswered(); }
  std::size_t refuse_peer() override { return wire_->refuse_peer(); }
  [[nodiscard]] std::uint64_t sent() const noexcept override { return wire_ ? wire_->sent() : 0; }

 private:
  Executor& executor_;
  Options at_;  // the server itself
  Events& events_;
  const std::shared_ptr<Sentinels> sentinels_;
  const WireFactory wires_;
  std::unique_ptr<Wire> wire_;  // once the master is located
  Lifetime lifetime_;
};

}  // namespace

WireFactory sentinel_wires(std::shared_ptr<Sentinels> sentinels, WireFactory wires) {
  return [sentinels = std::move(sentinels), wires = std::move(wires)](Executor& executor, const Options& options,
                                                                      Wire::Events& events) {
    return std::make_unique<SentinelWire>(executor, options, events, sentinels, wires);
  };
}

}  // namespace dlock::redis
