// The real connection to a member: gRPC over a socket.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include <dlock/lifetime.hpp>

#include "backends/common/stream.hpp"
#include "backends/common/tls.hpp"
#include "backends/etcd/connection/member.hpp"
#include "backends/etcd/wire/grpc.hpp"

namespace dlock::etcd {

class SocketMember final : public Member, private common::Stream::Events {
 public:
  SocketMember(Executor& executor, common::Peer peer, Member::Events& events);

  void open(TimePoint deadline) override { stream_.open(deadline); }
  [[nodiscard]] CallId begin(std::string_view method, const Grpc::Metadata& metadata) override {
    return grpc_.begin(method, metadata);
  }
  void send(CallId call, std::string_view message, bool last) override { grpc_.send(call, message, last); }
  void cancel(CallId call) override { grpc_.cancel(call); }
  void flush() override;
  void receive() override { stream_.receive(); }
  void discard() noexcept override { stream_.discard(); }

 private:
  void opened() override;
  void received(std::string_view bytes) override;
  void drained() override;
  void closed(Failure why, bool orderly) override;
  void fail();

  const std::string endpoint_;
  Member::Events& events_;
  Grpc grpc_;
  std::string output_;  // kept for the room that it has
  common::Stream stream_;
  Lifetime lifetime_;
};

// tls: nullptr for none.
[[nodiscard]] MemberFactory socket_members(std::shared_ptr<const common::TlsContext> tls);

}  // namespace dlock::etcd
