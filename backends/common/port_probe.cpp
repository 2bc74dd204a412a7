#include "backends/common/port_probe.hpp"

#include <sys/socket.h>

#include <array>
#include <chrono>
#include <system_error>
#include <utility>

#include <dlock/duration.hpp>

namespace dlock::common {

namespace {

constexpr std::chrono::milliseconds patience{500};

// A ClientHello of TLS 1.2 without extensions: a server that speaks TLS answers with a record, if only an alert.
std::string client_hello() {
  return std::string("\x16\x03\x01\x00\x2d\x01\x00\x00\x29\x03\x03", 11) + std::string(32, 'd') +
         std::string("\x00\x00\x02\xc0\x2f\x01\x00", 7);
}

bool is_tls_record(const char* bytes, ssize_t count) {
  constexpr char alert = 0x15;
  constexpr char handshake = 0x16;
  return count == 2 && (bytes[0] == alert || bytes[0] == handshake) && bytes[1] == 3;
}

}  // namespace

PortProbe::PortProbe(Executor& executor, const util::Address& address, std::string greeting,
                     std::function<void(Answer)> done)
    : executor_(executor),
      bytes_(greeting.empty() ? client_hello() : std::move(greeting)),
      done_(std::move(done)),
      timer_(executor),
      dial_(executor, {address}, saturating_add(executor.now(), patience), nullptr,
            [this](Result<TcpDial::Connected> result) { connected(std::move(result)); }) {
  timer_.arm(saturating_add(executor.now(), patience), [this] { finish(Answer::none); });
}

PortProbe::~PortProbe() = default;

void PortProbe::connected(Result<TcpDial::Connected> result) {
  if (!result.ok()) return finish(Answer::none);
  socket_ = std::move(result.value().socket);
  try {
    descriptor_ = executor_.watch(socket_.get());
  } catch (const Error&) {  // no descriptor is left: then it remains unknown
    return finish(Answer::none);
  }
  if (::send(socket_.get(), bytes_.data(), bytes_.size(), MSG_NOSIGNAL) < 0) return finish(Answer::none);
  descriptor_->async_wait(Descriptor::Interest::readable, [this](std::error_code) { readable(); });
}

void PortProbe::readable() {
  std::array<char, 2> beginning{};
  const ssize_t count = ::recv(socket_.get(), beginning.data(), beginning.size(), 0);
  if (count <= 0) return finish(Answer::none);
  finish(is_tls_record(beginning.data(), count) ? Answer::tls : Answer::other);
}

void PortProbe::finish(Answer answer) {
  timer_.disarm();
  descriptor_.reset();
  const auto done = std::move(done_);
  done(answer);
}

}  // namespace dlock::common
