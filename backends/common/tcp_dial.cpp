#include "backends/common/tcp_dial.hpp"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <system_error>
#include <utility>

#include <dlock/duration.hpp>

namespace dlock::common {

namespace {

bool same(const util::Address& a, const util::Address& b) {
  return a.length == b.length && std::memcmp(&a.storage, &b.storage, a.length) == 0;
}

// The connection works without these options, too: failures are ignored.
void set_options(int socket) noexcept {
  const int on = 1;
  (void)setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  (void)setsockopt(socket, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
  const int idle_seconds = 15;
  const int interval_seconds = 5;
  const int probes = 3;
  (void)setsockopt(socket, IPPROTO_TCP, TCP_KEEPIDLE, &idle_seconds, sizeof idle_seconds);
  (void)setsockopt(socket, IPPROTO_TCP, TCP_KEEPINTVL, &interval_seconds, sizeof interval_seconds);
  (void)setsockopt(socket, IPPROTO_TCP, TCP_KEEPCNT, &probes, sizeof probes);
}

// Bounds the list where the addresses of a name change.
constexpr std::size_t most_refused = 16;

}  // namespace

void PeerHint::refuse(const util::Address& address) {
  std::erase_if(refused, [&](const auto& each) { return same(each, address); });
  refused.push_back(address);
  if (refused.size() > most_refused) refused.erase(refused.begin());
  if (const auto standing = peer.lock(); standing && same(*standing, address)) peer.reset();
}

std::string describe_errno(int error) {
  return std::system_category().message(error);
}

TcpDial::TcpDial(Executor& executor, TimePoint deadline, PeerHint* hint, Handler done)
    : executor_(executor), deadline_(deadline), hint_(hint), done_(std::move(done)), timer_(executor) {}

TcpDial::TcpDial(Executor& executor, const std::string& host, std::uint16_t port, TimePoint deadline, PeerHint* hint,
                 Handler done)
    : TcpDial(executor, deadline, hint, std::move(done)) {
  resolution_.emplace(executor, host, port,
                      [this](Result<std::vector<util::Address>> answer) { resolved(std::move(answer)); });
}

TcpDial::TcpDial(Executor& executor, std::vector<util::Address> addresses, TimePoint deadline, PeerHint* hint,
                 Handler done)
    : TcpDial(executor, deadline, hint, std::move(done)) {
  executor.post(lifetime_.guard([this, addresses = std::move(addresses)] { resolved(addresses); }));
}

TcpDial::~TcpDial() = default;

void TcpDial::resolved(Result<std::vector<util::Address>> answer) {
  if (!answer.ok()) return finish(answer.failure());
  addresses_ = std::move(answer.value());
  if (hint_ != nullptr) {
    for (const util::Address& refused : hint_->refused) {
      std::stable_partition(addresses_.begin(), addresses_.end(),
                            [&](const auto& each) { return !same(each, refused); });
    }
  }
  if (const auto peer = hint_ != nullptr ? hint_->peer.lock() : nullptr) {
    std::stable_partition(addresses_.begin(), addresses_.end(), [&](const auto& each) { return same(each, *peer); });
  }
  try_next_address();
}

void TcpDial::try_next_address() {
  const util::Address& address = addresses_[next_address_++];
  if (auto problem = start_connecting(address)) return failed(*std::move(problem));
  // An address that never answers must not use up the time of those after it.
  const std::size_t left = addresses_.size() - next_address_;
  if (left == 0) return;
  const TimePoint now = executor_.now();
  const auto share = (deadline_ - now) / static_cast<std::int64_t>(left + 1);
  timer_.arm(saturating_add(now, share), [this] { failed("no answer"); });
}

std::optional<std::string> TcpDial::start_connecting(const util::Address& address) {
  socket_ = util::UniqueFd(::socket(address.family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, IPPROTO_TCP));
  if (!socket_) return "cannot create a socket: " + describe_errno(errno);
  set_options(socket_.get());
  const int result = ::connect(socket_.get(), address.get(), address.length);
  if (result != 0 && errno != EINPROGRESS) return describe_errno(errno);
  try {
    descriptor_ = executor_.watch(socket_.get());
  } catch (const Error& e) {
    return e.detail();
  }
  descriptor_->async_wait(Descriptor::Interest::writable, [this](std::error_code) { writable(); });
  return std::nullopt;
}

void TcpDial::writable() {
  int error = 0;
  socklen_t size = sizeof error;
  if (getsockopt(socket_.get(), SOL_SOCKET, SO_ERROR, &error, &size) != 0) error = errno;
  if (error != 0) return failed(describe_errno(error));
  const util::Address& address = addresses_[next_address_ - 1];
  std::shared_ptr<const util::Address> peer = hint_ != nullptr ? hint_->peer.lock() : nullptr;
  if (!peer || !same(*peer, address)) {
    peer = std::make_shared<const util::Address>(address);
    if (hint_ != nullptr) hint_->peer = peer;
  }
  // Its new owner watches it again: epoll would keep reporting that it is writable.
  descriptor_.reset();
  finish(Connected{std::move(socket_), std::move(peer)});
}

void TcpDial::failed(std::string why) {
  timer_.disarm();
  descriptor_.reset();
  socket_.reset();
  if (next_address_ < addresses_.size()) return try_next_address();
  finish(Failure{errc::unavailable, std::move(why)});
}

void TcpDial::finish(Result<Connected> result) {
  timer_.disarm();
  if (const auto done = std::exchange(done_, nullptr)) done(std::move(result));  // may destroy this
}

}  // namespace dlock::common
