// A connection to the master of a service, wherever it is: the sentinels are asked first, and the connection breaks
// when they say that another server is the master now.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>

#include <dlock/spi/executor.hpp>
#include <dlock/spi/lifetime.hpp>

#include "backends/redis/connection/wire.hpp"
#include "backends/redis/options.hpp"
#include "backends/redis/sentinel/sentinels.hpp"

namespace dlock::redis {

class SentinelWire final : public Wire, private Sentinels::Follower {
 public:
  // wires: how connections to a server are made.
  SentinelWire(Executor& executor, const Options& options, Events& events, std::shared_ptr<Sentinels> sentinels,
               const WireFactory& wires);
  ~SentinelWire() override;

  void open(TimePoint deadline) override;
  void write(std::string_view bytes) override { wire_->write(bytes); }
  void flush() override { wire_->flush(); }
  void receive() override { wire_->receive(); }
  void discard() noexcept override;
  [[nodiscard]] bool tls_unanswered() const noexcept override { return wire_ && wire_->tls_unanswered(); }
  std::size_t refuse_peer() override { return wire_ ? wire_->refuse_peer() : 1; }
  [[nodiscard]] std::uint64_t sent() const noexcept override { return wire_ ? wire_->sent() : 0; }

 private:
  void located(const Result<common::Host>& master, TimePoint deadline);
  void master_moved(const common::Host& to) override;

  Executor& executor_;
  Options at_;  // the server itself
  Events& events_;
  const std::shared_ptr<Sentinels> sentinels_;
  const WireFactory wires_;
  std::unique_ptr<Wire> wire_;
  Lifetime lifetime_;
};

[[nodiscard]] WireFactory sentinel_wires(std::shared_ptr<Sentinels> sentinels, WireFactory wires);

}  // namespace dlock::redis
