#include "backends/redis/socket_wire.hpp"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <utility>

namespace dlock::redis {

namespace {

constexpr std::size_t read_bytes = 16384;
constexpr int reads_per_turn = 16;  // then others get their turn

std::string describe(int error) {
  return std::system_category().message(error);
}

}  // namespace

WireFactory socket_wires(std::shared_ptr<const TlsContext> tls) {
  return [tls = std::move(tls)](Executor& executor, const Options& options, Wire::Events& events) {
    return std::make_unique<SocketWire>(executor, options, tls.get(), events);
  };
}

SocketWire::SocketWire(Executor& executor, const Options& options, const TlsContext* tls, Events& events)
    : executor_(executor), options_(options), tls_(tls), events_(events), timer_(executor) {}

SocketWire::~SocketWire() {
  descriptor_.reset();
  if (socket_ && discard_) {
    const linger none{.l_onoff = 1, .l_linger = 0};
    // Where it fails, what is left is sent after all: as without it.
    (void)setsockopt(socket_.get(), SOL_SOCKET, SO_LINGER, &none, sizeof none);
  }
}

// --- Connecting ------------------------------------------------------------------------------------------------------

void SocketWire::open(TimePoint deadline) {
  deadline_ = deadline;
  resolution_.emplace(executor_, options_.host, options_.port,
                      [this](Result<std::vector<util::Address>> answer) { resolved(std::move(answer)); });
}

void SocketWire::resolved(Result<std::vector<util::Address>> answer) {
  if (!answer.ok()) return close(answer.failure());
  addresses_ = std::move(answer.value());
  try_next_address();
}

void SocketWire::try_next_address() {
  const util::Address& address = addresses_[next_address_++];
  if (auto problem = start_connecting(address)) return address_failed(*std::move(problem));
  // A black hole must not take the time of those that come after it.
  const std::size_t left = addresses_.size() - next_address_;
  if (left == 0) return;
  const TimePoint now = executor_.now();
  const auto share = (deadline_ - now) / static_cast<std::int64_t>(left + 1);
  timer_.arm(saturating_add(now, share), [this] { address_failed(broken("no answer")); });
}

std::optional<Failure> SocketWire::start_connecting(const util::Address& address) {
  socket_ = util::UniqueFd(::socket(address.family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, IPPROTO_TCP));
  if (!socket_) return broken("no socket: " + describe(errno));
  set_options();
  const int result = ::connect(socket_.get(), address.get(), address.length);
  if (result != 0 && errno != EINPROGRESS) return broken(describe(errno));
  try {
    descriptor_ = executor_.watch(socket_.get());
  } catch (const Error& e) {
    return Failure{e.code(), e.detail()};
  }
  descriptor_->async_wait(Descriptor::Interest::writable, [this](std::error_code) { connected(); });
  return std::nullopt;
}

void SocketWire::set_options() const noexcept {
  // All of them only make things better; a system that refuses one still works.
  const int on = 1;
  (void)setsockopt(socket_.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  (void)setsockopt(socket_.get(), SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
  const int idle_seconds = 15;
  const int interval_seconds = 5;
  const int probes = 3;
  (void)setsockopt(socket_.get(), IPPROTO_TCP, TCP_KEEPIDLE, &idle_seconds, sizeof idle_seconds);
  (void)setsockopt(socket_.get(), IPPROTO_TCP, TCP_KEEPINTVL, &interval_seconds, sizeof interval_seconds);
  (void)setsockopt(socket_.get(), IPPROTO_TCP, TCP_KEEPCNT, &probes, sizeof probes);
}

void SocketWire::connected() {
  int error = 0;
  socklen_t size = sizeof error;
  if (getsockopt(socket_.get(), SOL_SOCKET, SO_ERROR, &error, &size) != 0) error = errno;
  if (error != 0) return address_failed(broken(describe(error)));
  timer_.disarm();
  addresses_.clear();
  // Watched anew: having waited to write once, epoll would go on telling us that we may.
  descriptor_.reset();
  try {
    descriptor_ = executor_.watch(socket_.get());
  } catch (const Error& e) {
    return close({e.code(), e.detail()});
  }
  open_ = true;
  wait_readable();
  if (tls_ == nullptr) return events_.opened();
  try {
    filter_ = tls_->filter(options_.host);
  } catch (const std::bad_alloc&) {
    return close(broken("out of memory"));
  }
  continue_handshake();
}

void SocketWire::address_failed(Failure why) {
  timer_.disarm();
  descriptor_.reset();
  socket_.reset();
  if (next_address_ < addresses_.size()) return try_next_address();
  close(std::move(why));
}

void SocketWire::continue_handshake() {
  const bool complete = filter_->handshake();
  filter_->take_output(output_);  // an alert, perhaps, if it failed
  if (filter_->failure().code) {
    send_output();
    return close({filter_->failure().code, options_.endpoint() + ": " + filter_->failure().detail});
  }
  secured_ = complete;
  send_output();
  if (complete) events_.opened();
}

// --- Connected -------------------------------------------------------------------------------------------------------

void SocketWire::wait_readable() {
  descriptor_->async_wait(Descriptor::Interest::readable, [this](std::error_code) {
    const Lifetime::Watch life = lifetime_.watch();
    receive();
    if (!life.over() && open_) wait_readable();
  });
}

void SocketWire::receive() {
  if (!open_) return;
  const Lifetime::Watch life = lifetime_.watch();
  std::array<char, read_bytes> buffer;
  for (int turn = 0; turn < reads_per_turn; ++turn) {
    const ssize_t count = ::recv(socket_.get(), buffer.data(), buffer.size(), 0);
    if (count == 0) return close(broken("the server closed the connection"));
    if (count < 0) {
      if (errno == EINTR) continue;
      if (errno == EAGAIN || errno == EWOULDBLOCK) break;
      return close(broken(describe(errno)));
    }
    if (!take({buffer.data(), static_cast<std::size_t>(count)}) || life.over()) return;
    if (static_cast<std::size_t>(count) < buffer.size()) break;  // there was no more
  }
  events_.drained();
}

// False: closed, or destroyed.
bool SocketWire::take(std::string_view network) {
  if (!filter_) return deliver(network);
  const Lifetime::Watch life = lifetime_.watch();
  std::string plain;
  if (!filter_->decrypt(network, plain)) {
    // What came before the end counts.
    if (!plain.empty() && !deliver(plain)) return false;
    close({filter_->failure().code, options_.endpoint() + ": " + filter_->failure().detail});
    return false;
  }
  if (!secured_) {
    continue_handshake();
    if (life.over() || !open_) return false;
    return !secured_ || take({});  // what came right behind the handshake
  }
  return deliver(plain);
}

bool SocketWire::deliver(std::string_view plain) {
  const Lifetime::Watch life = lifetime_.watch();
  reader_.feed(plain);
  while (auto reply = reader_.next()) {
    events_.received(*std::move(reply));
    if (life.over()) return false;
  }
  if (reader_.problem().empty()) return true;
  close({errc::protocol, options_.endpoint() + " does not speak Redis's protocol: " + reader_.problem()});
  return false;
}

void SocketWire::write(std::string_view bytes) {
  if (filter_) {
    plain_ += bytes;
  } else {
    output_ += bytes;
    written_ += bytes.size();
  }
}

void SocketWire::flush() {
  if (!open_) return;
  if (filter_ && !plain_.empty()) {
    written_ += plain_.size();
    if (!filter_->encrypt(plain_)) {
      return close_later({filter_->failure().code, options_.endpoint() + ": " + filter_->failure().detail});
    }
    plain_.clear();
    filter_->take_output(output_);
  }
  send_output();
}

void SocketWire::send_output() {
  while (output_done_ < output_.size()) {
    const ssize_t count =
        ::send(socket_.get(), output_.data() + output_done_, output_.size() - output_done_, MSG_NOSIGNAL);
    if (count < 0) {
      if (errno == EINTR) continue;
      if (errno == EAGAIN || errno == EWOULDBLOCK) return wait_writable();
      return close_later(broken(describe(errno)));
    }
    output_done_ += static_cast<std::size_t>(count);
    // With TLS nobody can tell which of the plain bytes are gone.
    sent_ = filter_ ? written_ : sent_ + static_cast<std::uint64_t>(count);
  }
  output_.clear();
  output_done_ = 0;
}

void SocketWire::wait_writable() {
  if (std::exchange(waiting_writable_, true)) return;
  descriptor_->async_wait(Descriptor::Interest::writable, [this](std::error_code) {
    waiting_writable_ = false;
    send_output();
  });
}

void SocketWire::close(Failure why) {
  open_ = false;
  timer_.disarm();
  descriptor_.reset();
  events_.closed(std::move(why));
}

// Whoever writes does not expect to hear of the end inside the call. And the server may have said why it hung up.
void SocketWire::close_later(Failure why) {
  executor_.post([this, why = std::move(why), life = lifetime_.watch()] {
    if (!life.over()) receive();
    if (!life.over() && open_) close(why);
  });
}

Failure SocketWire::broken(const std::string& why) const {
  return {errc::unavailable, options_.endpoint() + ": " + why};
}

}  // namespace dlock::redis
