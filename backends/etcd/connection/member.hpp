// A connection to a member of the cluster, as the rest sees it: calls, and what comes of them. SocketMember is the real
// one; tests have one with a scripted member at the other end.
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

// In tasks only. Destroying it closes the connection; nothing is reported from then on.
class Member {
 public:
  // Any of these may destroy the member.
  class Events {
   public:
    Events() = default;
    Events(const Events&) = delete;
    Events& operator=(const Events&) = delete;
    virtual void member_opened() = 0;
    virtual void member_said(CallId call, std::string message) = 0;
    virtual void member_ended(CallId call, GrpcStatus status) = 0;
    // All that had arrived has been handed over.
    virtual void member_drained() = 0;
    // The connection could not be made, or has ended; orderly: the other side closed it. Nothing follows.
    virtual void member_closed(Failure why, bool orderly) = 0;

   protected:
    ~Events() = default;
  };

  Member() = default;
  Member(const Member&) = delete;
  Member& operator=(const Member&) = delete;
  virtual ~Member() = default;

  // Starts connecting; member_opened() or member_closed() follows, never inside the call. The caller enforces the
  // deadline.
  virtual void open(TimePoint deadline) = 0;
  // Only once it is open. 0: it takes no more calls. One for which there is no room waits until another has ended.
  [[nodiscard]] virtual CallId begin(std::string_view method, const Grpc::Metadata& metadata) = 0;
  // The same for a call that stays open. If the member allows one call at a time on a connection, this one gets a
  // connection of its own, whose end is only the end of this call.
  [[nodiscard]] virtual CallId begin_stream(std::string_view method, const Grpc::Metadata& metadata) = 0;
  // How many calls it takes now.
  [[nodiscard]] virtual std::size_t room() const noexcept = 0;
  // How many it allows at a time.
  [[nodiscard]] virtual std::size_t most_calls() const noexcept = 0;
  // It takes no more calls, and closes the connection when those that it has taken have ended.
  [[nodiscard]] virtual bool closing() const noexcept = 0;
  virtual void send(CallId call, std::string_view message, bool last) = 0;
  // Nothing of it is reported any more.
  virtual void cancel(CallId call) = 0;
  // Hands to the network what it takes now. Reports nothing inside the call.
  virtual void flush() = 0;
  // Takes in what has arrived already. May report anything.
  virtual void receive() = 0;
  // From now on, closing throws away what the network has not taken.
  virtual void discard() noexcept = 0;
};

// Executor and events outlive the member.
using MemberFactory = std::function<std::unique_ptr<Member>(Executor&, const common::Host&, Member::Events&)>;

}  // namespace dlock::etcd
