#include "backends/common/stream.hpp"

#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <new>
#include <system_error>
#include <utility>

#include <dlock/duration.hpp>

namespace dlock::common {

namespace {

constexpr std::size_t read_bytes = 16384;
constexpr int reads_per_turn = 16;  // then other tasks run
constexpr std::size_t encrypted_at_once = std::size_t{64} << 10;
constexpr std::chrono::milliseconds answer_soon{250};
constexpr std::chrono::seconds finding_lasts{10};

}  // namespace

TcpStream::TcpStream(Executor& executor, Peer peer, Events& events)
    : executor_(executor), peer_(std::move(peer)), events_(events), silence_timer_(executor) {}

TcpStream::~TcpStream() {
  descriptor_.reset();
  if (socket_ && discard_) {
    const linger none{.l_onoff = 1, .l_linger = 0};
    // If this fails, the rest is sent after all.
    (void)setsockopt(socket_.get(), SOL_SOCKET, SO_LINGER, &none, sizeof none);
  }
}

// --- Connecting ------------------------------------------------------------------------------------------------------

void TcpStream::open(TimePoint deadline) {
  dial_.emplace(executor_, peer_.host, peer_.port, deadline, peer_.hint,
                [this](Result<TcpDial::Connected> result) { connected(std::move(result)); });
}

void TcpStream::connected(Result<TcpDial::Connected> result) {
  if (!result.ok()) {
    Failure why = result.failure();
    why.detail = peer_.name + ": " + why.detail;
    return close(std::move(why));
  }
  socket_ = std::move(result.value().socket);
  address_ = std::move(result.value().peer);
  try {
    descriptor_ = executor_.watch(socket_.get());
    if (peer_.tls != nullptr) filter_ = peer_.tls->filter(peer_.host);
  } catch (const Error& e) {
    return close({e.code(), e.detail()});
  } catch (const std::bad_alloc&) {
    return close(broken("out of memory"));
  }
  open_ = true;
  wait_readable();
  if (!filter_) return events_.opened();
  silence_timer_.arm(saturating_add(executor_.now(), answer_soon), [this] {
    if (open_ && !heard_) explain_silence([] {});
  });
  continue_handshake();
}

Failure TcpStream::broken(const std::string& why) const {
  return {errc::unavailable, peer_.name + ": " + why};
}

Failure TcpStream::tls_failure() const {
  return {filter_->failure().code, peer_.name + ": " + filter_->failure().detail};
}

void TcpStream::continue_handshake() {
  const bool complete = filter_->handshake();
  filter_->take_output(output_.end());  // an alert, perhaps, if it failed
  if (filter_->failure().code) {
    send_output();
    return close(tls_failure());
  }
  secured_ = complete;
  send_output();
  if (complete) events_.opened();
}

// --- Connected -------------------------------------------------------------------------------------------------------

void TcpStream::wait_readable() {
  descriptor_->async_wait(Descriptor::Interest::readable, [this](std::error_code) {
    const Lifetime::Watch life = lifetime_.watch();
    receive();
    if (!life.over() && open_) wait_readable();
  });
}

void TcpStream::receive() {
  if (!open_) return;
  const Lifetime::Watch life = lifetime_.watch();
  std::array<char, read_bytes> buffer;
  for (int turn = 0; turn < reads_per_turn; ++turn) {
    const ssize_t count = ::recv(socket_.get(), buffer.data(), buffer.size(), 0);
    if (count == 0) return close(broken("the server closed the connection"), true);
    if (count < 0) {
      if (errno == EINTR) continue;
      if (errno == EAGAIN || errno == EWOULDBLOCK) break;
      return close(broken(describe_errno(errno)));
    }
    if (!take({buffer.data(), static_cast<std::size_t>(count)}) || life.over()) return;
    if (static_cast<std::size_t>(count) < buffer.size()) break;  // there was no more
  }
  events_.drained();
}

// False: closed, or destroyed.
bool TcpStream::take(std::string_view network) {
  heard_ = true;
  if (!filter_) return deliver(network);
  const Lifetime::Watch life = lifetime_.watch();
  std::string plain;
  if (!filter_->decrypt(network, plain)) {
    // Data that arrived before the failure counts.
    if (!plain.empty() && !deliver(plain)) return false;
    close(tls_failure());
    return false;
  }
  if (!secured_) {
    continue_handshake();
    if (life.over() || !open_) return false;
    return !secured_ || take({});  // data that arrived right behind the handshake
  }
  return deliver(plain);
}

bool TcpStream::deliver(std::string_view plain) {
  const Lifetime::Watch life = lifetime_.watch();
  events_.received(plain);
  return !life.over() && open_;
}

void TcpStream::write(std::string_view bytes) {
  if (filter_) {
    plain_ += bytes;
  } else {
    output_.end() += bytes;
    written_ += bytes.size();
  }
}

void TcpStream::flush() {
  if (!open_) return;
  if (filter_ && !plain_.empty()) {
    written_ += plain_.size();
    // Piece by piece: the filter keeps the memory that its output takes.
    for (std::string_view left = plain_; !left.empty(); left.remove_prefix(std::min(left.size(), encrypted_at_once))) {
      if (!filter_->encrypt(left.substr(0, encrypted_at_once))) return close_later(tls_failure());
      filter_->take_output(output_.end());
    }
    empty_buffer(plain_);
  }
  send_output();
}

void TcpStream::send_output() {
  while (output_.size() != 0) {
    const ssize_t count = ::send(socket_.get(), output_.bytes().data(), output_.size(), MSG_NOSIGNAL);
    if (count < 0) {
      if (errno == EINTR) continue;
      if (errno == EAGAIN || errno == EWOULDBLOCK) return wait_writable();
      return close_later(broken(describe_errno(errno)));
    }
    output_.remove(static_cast<std::size_t>(count));
    // With TLS it is unknown which of the plain bytes were sent.
    sent_ = filter_ ? written_ : sent_ + static_cast<std::uint64_t>(count);
  }
}

void TcpStream::wait_writable() {
  if (std::exchange(waiting_writable_, true)) return;
  descriptor_->async_wait(Descriptor::Interest::writable, [this](std::error_code) {
    waiting_writable_ = false;
    send_output();
  });
}

std::size_t TcpStream::refuse_peer() {
  if (address_ && peer_.hint != nullptr) peer_.hint->refuse(*address_);
  return dial_ ? dial_->addresses() : 0;
}

void TcpStream::close(Failure why, bool orderly) {
  const bool silent = open_ && !heard_;
  open_ = false;
  descriptor_.reset();
  silence_timer_.disarm();
  if (!silent) return events_.closed(std::move(why), orderly);
  explain_silence([this, why = std::move(why), orderly] {
    const std::string_view hint = filter_ != nullptr ? perhaps_no_tls : perhaps_only_tls;
    events_.closed({why.code, why.detail + std::string(explained_ ? hint : "")}, orderly);
  });
}

void TcpStream::explain_silence(const std::function<void()>& then) {
  if (peer_.probing == nullptr || !address_) return then();
  const auto found = peer_.probing->ports.find(peer_.name);
  if (found != peer_.probing->ports.end() && executor_.now() < found->second.until) {
    explained_ = found->second.explains;
    return then();
  }
  const auto other_side = filter_ != nullptr ? PortProbe::Answer::other : PortProbe::Answer::tls;
  probe_.emplace(executor_, *address_, filter_ != nullptr ? peer_.probing->greeting : std::string(),
                 [this, other_side, then](PortProbe::Answer answer) {
                   explained_ = answer == other_side;
                   const TimePoint until = saturating_add(executor_.now(), finding_lasts);
                   peer_.probing->ports.insert_or_assign(peer_.name, TlsProbing::Found{explained_, until});
                   then();
                 });
}

// In a later task, because flush() reports nothing inside the call. First reads what the server may have sent.
void TcpStream::close_later(Failure why) {
  executor_.post([this, why = std::move(why), life = lifetime_.watch()] {
    if (!life.over()) receive();
    if (!life.over() && open_) close(why);
  });
}

}  // namespace dlock::common
