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
  [[nodiscard]] CallId begin(std::string_view method, const Grpc::Metadata& metadata) override {
    return grpc_.begin(method, metadata);
  }
  [[nodiscard]] CallId begin_stream(std::string_view method, const Grpc::Metadata& metadata) override;
  [[nodiscard]] std::size_t room() const noexcept override;
  [[nodiscard]] std::size_t most_calls() const noexcept override { return grpc_.most_calls(); }
  [[nodiscard]] bool closing() const noexcept override { return grpc_.closing(); }
  void send(CallId call, std::string_view message, bool last) override;
  void cancel(CallId call) override;
  void flush() override;
  void receive() override { stream_.receive(); }
  void discard() noexcept override;

 private:
  class Second;

  void opened() override;
  void received(std::string_view bytes) override;
  void drained() override;
  void closed(Failure why, bool orderly) override;
  void fail();

  Executor& executor_;
  const common::Peer peer_;
  Member::Events& events_;
  bool open_ = false;     // the bytes of the network's connection
  bool greeted_ = false;  // and the member has sent its settings
  Grpc grpc_;
  std::string output_;  // kept for the room that it has
  common::Stream stream_;
  std::unique_ptr<Second> second_;
  Lifetime lifetime_;
};

// tls: nullptr for none.
[[nodiscard]] MemberFactory socket_members(std::shared_ptr<const common::TlsContext> tls);

}  // namespace dlock::etcd
