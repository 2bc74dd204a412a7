#include "backends/etcd/connection/socket_member.hpp"

#include <utility>

namespace dlock::etcd {

namespace {

// Who sends and does not read makes us answer (pings, settings) without end.
constexpr std::size_t most_pending = std::size_t{16} << 20;

}  // namespace

SocketMember::SocketMember(Executor& executor, common::Peer peer, Member::Events& events)
    : endpoint_(peer.name),
      events_(events),
      grpc_(endpoint_, peer.tls != nullptr),
      stream_(executor, std::move(peer), *this) {}

void SocketMember::flush() {
  output_.clear();
  grpc_.take_output(output_);
  if (!output_.empty()) stream_.write(output_);
  stream_.flush();
}

void SocketMember::opened() {
  flush();  // the settings
  events_.member_opened();
}

void SocketMember::received(std::string_view bytes) {
  const Lifetime::Watch life = lifetime_.watch();
  (void)grpc_.receive(bytes);  // its problem() says more
  while (auto event = grpc_.next()) {
    if (event->message) {
      events_.member_said(event->call, *std::move(event->message));
    } else {
      events_.member_ended(event->call, std::move(event->status));
    }
    if (life.over()) return;
  }
  if (!grpc_.problem().empty()) fail();
}

void SocketMember::drained() {
  const Lifetime::Watch life = lifetime_.watch();
  events_.member_drained();
  if (life.over()) return;
  flush();
  if (!grpc_.problem().empty()) return fail();
  if (stream_.pending() > most_pending) {
    events_.member_closed({errc::protocol, endpoint_ + ": the server sends data, but does not read requests"});
  }
}

void SocketMember::fail() {
  events_.member_closed({errc::protocol, endpoint_ + ": " + grpc_.problem()});
}

void SocketMember::closed(Failure why, bool /*orderly*/) {
  events_.member_closed(std::move(why));
}

MemberFactory socket_members(std::shared_ptr<const common::TlsContext> tls) {
  // The preface of HTTP/2 and empty settings.
  const std::string greeting = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + std::string("\0\0\0\4\0\0\0\0\0", 9);
  return
      [tls = std::move(tls), probing = std::make_shared<common::TlsProbing>(common::TlsProbing{.greeting = greeting})](
          Executor& executor, const common::Host& host, Member::Events& events) {
        return std::make_unique<SocketMember>(
            executor, common::Peer{host.name, host.port, host.to_string(), tls.get(), nullptr, probing.get()}, events);
      };
}

}  // namespace dlock::etcd
