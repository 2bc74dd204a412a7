// The real connection to a member: gRPC over a socket.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

#include <dlock/spi/lifetime.hpp>

#include "backends/common/stream.hpp"
#include "backends/common/tls.hpp"
#include "backends/etcd/connection/member.hpp"
#include "backends/etcd/wire/grpc.hpp"

namespace dlock::etcd {

class SocketMember final : public Member, private common::Stream::Events {
 public:
  SocketMember(Executor& executor, common::Peer peer, Member::Events& events);
  ~SocketMember() override;

  void open(TimePoint deadline) override { stream_.open(deadline); }
  [[nodiscard]] CallId call(std::string_view method, const Grpc::Metadata& metadata, std::string_view request) override;
  [[nodiscard]] CallId open_stream(std::string_view method, const Grpc::Metadata& metadata) override;
  void send(CallId stream, std::string_view message) override;
  void cancel(CallId call) override;
  [[nodiscard]] std::size_t room() const noexcept override;
  [[nodiscard]] std::size_t most_calls() const noexcept override { return grpc_.most_calls(); }
  [[nodiscard]] bool closing() const noexcept override { return grpc_.closing(); }
  void flush() override;
  void receive() override { stream_.receive(); }
  void discard() noexcept override;

 private:
  struct Second;

  void opened() override;
  void received(std::string_view bytes) override;
  void drained() override;
  void closed(Failure why, bool orderly) override { events_.member_closed(std::move(why), orderly); }
  void fail(errc code, const std::string& why) { events_.member_closed({code, peer_.name + ": " + why}, false); }

  Executor& executor_;
  const common::Peer peer_;
  Member::Events& events_;
  bool open_ = false;  // the TCP connection, with TLS
  Grpc grpc_;
  std::string output_;  // kept for its memory
  common::TcpStream stream_;
  std::unique_ptr<Second> second_;
  Lifetime lifetime_;
};

// tls: nullptr for none.
[[nodiscard]] MemberFactory socket_members(std::shared_ptr<const common::TlsContext> tls);

}  // namespace dlock::etcd
