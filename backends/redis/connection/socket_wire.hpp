// The real Wire: Redis's protocol over a TCP stream.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include <dlock/spi/executor.hpp>
#include <dlock/spi/lifetime.hpp>

#include "backends/common/stream.hpp"
#include "backends/redis/connection/reply.hpp"
#include "backends/redis/connection/wire.hpp"

namespace dlock::redis {

class SocketWire final : public Wire, private common::Stream::Events {
 public:
  SocketWire(Executor& executor, common::Peer peer, Wire::Events& events)
      : endpoint_(peer.name), events_(events), stream_(executor, std::move(peer), *this) {}

  void open(TimePoint deadline) override { stream_.open(deadline); }
  void write(std::string_view bytes) override { stream_.write(bytes); }
  void flush() override { stream_.flush(); }
  void receive() override { stream_.receive(); }
  void discard() noexcept override { stream_.discard(); }
  [[nodiscard]] bool tls_unanswered() const noexcept override { return stream_.tls_unanswered(); }
  std::size_t refuse_peer() override { return stream_.refuse_peer(); }
  [[nodiscard]] std::uint64_t sent() const noexcept override { return stream_.sent(); }

 private:
  void opened() override { events_.opened(); }
  void received(std::string_view bytes) override;
  void drained() override { events_.drained(); }
  void closed(Failure why, bool /*orderly*/) override { events_.closed(std::move(why)); }

  const std::string endpoint_;
  Wire::Events& events_;
  ReplyReader reader_;
  common::Stream stream_;
  Lifetime lifetime_;
};

// tls: nullptr for none.
[[nodiscard]] WireFactory socket_wires(std::shared_ptr<const common::TlsContext> tls);

}  // namespace dlock::redis
