// A connection to a member of the cluster: calls, streams, and their ends. SocketMember is the real one; tests have one
// with a scripted member at the other end.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include <dlock/clock.hpp>
#include <dlock/error.hpp>
#include <dlock/spi/executor.hpp>

#include "backends/common/host.hpp"
#include "backends/etcd/wire/grpc.hpp"

namespace dlock::etcd {

using CallId = Grpc::CallId;

// In tasks only. Its destruction closes the connection, without any event.
class Member {
 public:
  // Each of these may destroy the member.
  class Events {
   public:
    virtual void member_opened() = 0;
    virtual void member_event(Grpc::Event event) = 0;
    // All data that arrived has been delivered.
    virtual void member_drained() = 0;
    // The connection could not be made, or has ended; orderly: the other side closed it. The last event.
    virtual void member_closed(Failure why, bool orderly) = 0;

   protected:
    ~Events() = default;
  };

  virtual ~Member() = default;

  // Starts to connect; member_opened() or member_closed() follows, never inside the call. The caller enforces the
  // deadline.
  virtual void open(TimePoint deadline) = 0;
  // A call with one request. 0: the connection accepts no more. A call waits inside while there is no room for it. Only
  // once the connection is open.
  [[nodiscard]] virtual CallId call(std::string_view method, const Grpc::Metadata& metadata,
                                    std::string_view request) = 0;
  // A call that stays open for messages of both sides; otherwise the same. If the member allows only one concurrent
  // call on a connection, streams get a second connection, and its end is only the end of the streams.
  [[nodiscard]] virtual CallId open_stream(std::string_view method, const Grpc::Metadata& metadata) = 0;
  virtual void send(CallId stream, std::string_view message) = 0;
  // No event of the call or stream follows.
  virtual void cancel(CallId call) = 0;
  // How many more calls the member allows now.
  [[nodiscard]] virtual std::size_t room() const noexcept = 0;
  // How many concurrent calls the member allows.
  [[nodiscard]] virtual std::size_t most_calls() const noexcept = 0;
  // The member accepts no more calls, and closes the connection once those in flight have ended.
  [[nodiscard]] virtual bool closing() const noexcept = 0;
  // Hands queued data to the network. No event inside the call.
  virtual void flush() = 0;
  // Reads data that has arrived. Any event may follow inside the call.
  virtual void receive() = 0;
  // Makes the destruction discard queued data.
  virtual void discard() noexcept = 0;
};

// Executor and events outlive the member.
using MemberFactory = std::function<std::unique_ptr<Member>(Executor&, const common::Host&, Member::Events&)>;

}  // namespace dlock::etcd
