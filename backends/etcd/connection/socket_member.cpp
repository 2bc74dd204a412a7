#include "backends/etcd/connection/socket_member.hpp"

#include <chrono>
#include <utility>
#include <vector>

namespace dlock::etcd {

namespace {

// A server that sends without reading makes the client queue answers (to pings, settings) without end.
constexpr std::size_t most_pending = std::size_t{16} << 20;

std::string limit_of(std::size_t calls) {
  return "the server allows " + std::to_string(calls) +
         " concurrent streams on a connection (SETTINGS_MAX_CONCURRENT_STREAMS)";
}

}  // namespace

// The second connection to the member, for streams. The owner shows its calls with negative numbers.
struct SocketMember::Second final : Member::Events {
  explicit Second(SocketMember& first) : owner(first), member(first.executor_, first.peer_, *this) {
    member.open(saturating_add(first.executor_.now(), time_to_connect));
  }

  // The member queues streams until the connection is open.
  [[nodiscard]] CallId open_stream(std::string_view method, const Grpc::Metadata& metadata) {
    const CallId stream = member.grpc_.begin(method, metadata);
    if (stream != 0) streams.push_back(stream);
    return -stream;
  }

  static constexpr std::chrono::seconds time_to_connect{5};  // shared by all addresses of the host

  void member_opened() override {}
  void member_event(Grpc::Event event) override {
    if (!event.message) std::erase(streams, event.call);
    event.call = -event.call;
    owner.events_.member_event(std::move(event));
  }
  void member_drained() override { owner.drained(); }
  void member_closed(Failure why, bool /*orderly*/) override {
    const auto self = std::move(owner.second_);
    const Lifetime::Watch life = owner.lifetime_.watch();
    const GrpcStatus status{
        .code = GrpcStatus::unavailable,
        .message = limit_of(owner.most_calls()) + ", and a further connection ended: " + why.detail};
    for (const CallId stream : streams) {
      owner.events_.member_event({.call = -stream, .status = status});
      if (life.over()) return;
    }
    owner.drained();
  }

  SocketMember& owner;
  std::vector<CallId> streams;
  SocketMember member;
};

SocketMember::SocketMember(Executor& executor, common::Peer peer, Member::Events& events)
    : executor_(executor),
      peer_(std::move(peer)),
      events_(events),
      grpc_(peer_.name, peer_.tls != nullptr),
      stream_(executor, peer_, *this) {}

SocketMember::~SocketMember() = default;

// --- Calls -----------------------------------------------------------------------------------------------------------

CallId SocketMember::call(std::string_view method, const Grpc::Metadata& metadata, std::string_view request) {
  const CallId call = grpc_.begin(method, metadata);
  grpc_.send(call, request, true);
  return call;
}

CallId SocketMember::open_stream(std::string_view method, const Grpc::Metadata& metadata) {
  if (most_calls() > 1 || closing()) return grpc_.begin(method, metadata);
  if (!second_ || second_->member.closing()) second_ = std::make_unique<Second>(*this);
  return second_->open_stream(method, metadata);
}

void SocketMember::send(CallId stream, std::string_view message) {
  if (stream > 0) return grpc_.send(stream, message, false);
  if (second_) second_->member.send(-stream, message);
}

void SocketMember::cancel(CallId call) {
  if (call > 0) return grpc_.cancel(call);
  if (second_) second_->member.cancel(-call);
}

std::size_t SocketMember::room() const noexcept {
  const std::size_t most = most_calls();
  return closing() || grpc_.under_way() >= most ? 0 : most - grpc_.under_way();
}

void SocketMember::flush() {
  if (second_) second_->member.flush();
  if (!open_) return;  // the handshake of TLS comes first
  grpc_.take_output(output_);
  if (!output_.empty()) stream_.write(output_);
  common::empty_buffer(output_);
  stream_.flush();
}

void SocketMember::discard() noexcept {
  stream_.discard();
  if (second_) second_->member.discard();
}

// --- The network -----------------------------------------------------------------------------------------------------

// member_opened() waits for the member's settings: they prove that it speaks HTTP/2, and say how many calls it allows.
void SocketMember::opened() {
  open_ = true;
  flush();
}

void SocketMember::received(std::string_view bytes) {
  const Lifetime::Watch life = lifetime_.watch();
  const bool was_greeted = grpc_.greeted();
  (void)grpc_.receive(bytes);  // problem() has the reason of a failure
  if (!was_greeted && grpc_.greeted()) {
    if (most_calls() == 0) return fail(errc::unavailable, limit_of(0));
    events_.member_opened();
    if (life.over()) return;
  }
  while (auto event = grpc_.next()) {
    events_.member_event(*std::move(event));
    if (life.over()) return;
  }
  if (!grpc_.problem().empty()) fail(errc::protocol, grpc_.problem());
}

void SocketMember::drained() {
  const Lifetime::Watch life = lifetime_.watch();
  events_.member_drained();
  if (life.over()) return;
  flush();
  if (!grpc_.problem().empty()) return fail(errc::protocol, grpc_.problem());
  if (stream_.pending() > most_pending) fail(errc::protocol, "the server sends data, but does not read requests");
}

MemberFactory socket_members(std::shared_ptr<const common::TlsContext> tls) {
  // The preface of HTTP/2 and empty settings.
  const std::string greeting = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + std::string("\0\0\0\4\0\0\0\0\0", 9);
  const auto probing = std::make_shared<common::TlsProbing>(common::TlsProbing{.greeting = greeting});
  return [tls = std::move(tls), probing](Executor& executor, const common::Host& host, Member::Events& events) {
    return std::make_unique<SocketMember>(
        executor, common::Peer{host.name, host.port, host.to_string(), tls.get(), nullptr, probing.get()}, events);
  };
}

}  // namespace dlock::etcd
