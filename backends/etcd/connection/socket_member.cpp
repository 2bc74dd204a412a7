#include "backends/etcd/connection/socket_member.hpp"

#include <chrono>
#include <utility>
#include <vector>

namespace dlock::etcd {

namespace {

// Who sends and does not read makes us answer (pings, settings) without end.
constexpr std::size_t most_pending = std::size_t{16} << 20;

std::string limit_of(std::size_t calls) {
  return "the server allows " + std::to_string(calls) +
         " concurrent streams on a connection (SETTINGS_MAX_CONCURRENT_STREAMS)";
}

}  // namespace

// A further connection to the member, for streams. Its calls have negative numbers outside.
class SocketMember::Second final : public Member::Events {
 public:
  explicit Second(SocketMember& owner) : owner_(owner), member_(owner.executor_, owner.peer_, *this) {
    member_.open(saturating_add(owner.executor_.now(), time_to_connect));
  }

  // Also before it is open.
  [[nodiscard]] CallId begin(std::string_view method, const Grpc::Metadata& metadata) {
    const CallId call = member_.begin(method, metadata);
    if (call != 0) calls_.push_back(call);
    return -call;
  }
  [[nodiscard]] SocketMember& member() noexcept { return member_; }

 private:
  static constexpr std::chrono::seconds time_to_connect{5};  // is divided between several addresses

  void member_opened() override {}
  void member_said(CallId call, std::string message) override { owner_.events_.member_said(-call, std::move(message)); }
  void member_ended(CallId call, GrpcStatus status) override {
    std::erase(calls_, call);
    owner_.events_.member_ended(-call, std::move(status));
  }
  void member_drained() override { owner_.drained(); }
  void member_closed(Failure why, bool /*orderly*/) override {
    SocketMember& owner = owner_;
    const auto self = std::move(owner.second_);
    const Lifetime::Watch life = owner.lifetime_.watch();
    const GrpcStatus status{
        .code = GrpcStatus::unavailable,
        .message = limit_of(owner.most_calls()) + ", and a further connection ended: " + why.detail};
    for (const CallId call : calls_) {
      owner.events_.member_ended(-call, status);
      if (life.over()) return;
    }
    owner.drained();
  }

  SocketMember& owner_;
  std::vector<CallId> calls_;
  SocketMember member_;
};

SocketMember::SocketMember(Executor& executor, common::Peer peer, Member::Events& events)
    : executor_(executor),
      peer_(std::move(peer)),
      events_(events),
      grpc_(peer_.name, peer_.tls != nullptr),
      stream_(executor, peer_, *this) {}

SocketMember::~SocketMember() = default;

// --- Calls -----------------------------------------------------------------------------------------------------------

CallId SocketMember::begin_stream(std::string_view method, const Grpc::Metadata& metadata) {
  if (most_calls() > 1 || closing()) return begin(method, metadata);
  if (!second_ || second_->member().closing()) second_ = std::make_unique<Second>(*this);
  return second_->begin(method, metadata);
}

std::size_t SocketMember::room() const noexcept {
  const std::size_t most = most_calls();
  return closing() || grpc_.under_way() >= most ? 0 : most - grpc_.under_way();
}

void SocketMember::send(CallId call, std::string_view message, bool last) {
  if (call > 0) return grpc_.send(call, message, last);
  if (second_) second_->member().send(-call, message, last);
}

void SocketMember::cancel(CallId call) {
  if (call > 0) return grpc_.cancel(call);
  if (second_) second_->member().cancel(-call);
}

void SocketMember::flush() {
  if (second_) second_->member().flush();
  if (!open_) return;  // TLS may still have to begin
  grpc_.take_output(output_);
  if (!output_.empty()) stream_.write(output_);
  common::empty_buffer(output_);
  stream_.flush();
}

void SocketMember::discard() noexcept {
  stream_.discard();
  if (second_) second_->member().discard();
}

// --- The network -----------------------------------------------------------------------------------------------------

// The member is of use once it has sent its settings: until then it is unknown how many calls it allows, and whether it
// speaks HTTP/2 at all.
void SocketMember::opened() {
  open_ = true;
  flush();
}

void SocketMember::received(std::string_view bytes) {
  const Lifetime::Watch life = lifetime_.watch();
  (void)grpc_.receive(bytes);  // its problem() says more
  if (!std::exchange(greeted_, grpc_.greeted()) && greeted_) {
    if (most_calls() == 0) return events_.member_closed({errc::unavailable, peer_.name + ": " + limit_of(0)}, false);
    events_.member_opened();
    if (life.over()) return;
  }
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
    events_.member_closed({errc::protocol, peer_.name + ": the server sends data, but does not read requests"}, false);
  }
}

void SocketMember::fail() {
  events_.member_closed({errc::protocol, peer_.name + ": " + grpc_.problem()}, false);
}

void SocketMember::closed(Failure why, bool orderly) {
  events_.member_closed(std::move(why), orderly);
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
