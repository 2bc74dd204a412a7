#include "tests/support/scripted_server.hpp"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <utility>
#include <vector>

#include "torture/rig/hang_guard.hpp"

namespace dlock::test {
namespace {

// Repeated data is sent in pieces of about this size.
constexpr std::size_t piece = 65536;

bool would_block() {
  return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR;
}

}  // namespace

ScriptedServer::ScriptedServer(Script script)
    : script_(std::move(script)),
      stop_(rig::require(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK), "eventfd")),
      thread_([this] { run(); }) {}

ScriptedServer::~ScriptedServer() {
  const std::uint64_t one = 1;
  (void)!::write(stop_.get(), &one, sizeof(one));  // cannot fail: the counter is 0
}

ScriptedServer::Counters ScriptedServer::counters() const {
  const std::scoped_lock lock(mutex_);
  return counters_;
}

bool ScriptedServer::wait_until(const std::function<bool(const Counters&)>& condition) const {
  std::unique_lock lock(mutex_);
  return changed_.wait_for(lock, rig::hang_guard, [&] { return condition(counters_); });
}

void ScriptedServer::run() {
  for (;;) {
    wait_for_work();
    std::uint64_t value = 0;
    if (::read(stop_.get(), &value, sizeof(value)) > 0) return;
    while (rig::UniqueFd fd = listener_.accept()) {
      ++current_.accepted;
      ask_script(connections_.emplace_back(Connection{.fd = std::move(fd)}));
    }
    publish();  // before the client can learn of the connection
    current_.ended += connections_.remove_if([&](Connection& each) { return !serve(each); });
    publish();
  }
}

void ScriptedServer::publish() {
  const std::scoped_lock lock(mutex_);
  counters_ = current_;
  changed_.notify_all();
}

void ScriptedServer::wait_for_work() const {
  std::vector<pollfd> sources;
  sources.push_back({.fd = stop_.get(), .events = POLLIN, .revents = 0});
  sources.push_back({.fd = listener_.fd(), .events = POLLIN, .revents = 0});
  for (const Connection& each : connections_) {
    const bool sending = !each.to_send.empty() || each.repeats_left > 0;
    sources.push_back(
        {.fd = each.fd.get(), .events = static_cast<short>(POLLIN | (sending ? POLLOUT : 0)), .revents = 0});
  }
  (void)::poll(sources.data(), sources.size(), -1);
}

void ScriptedServer::ask_script(Connection& connection) const {
  const Answer answer = script_(connection.received);
  connection.received.erase(0, connection.received.size() - answer.unread);
  connection.to_send += answer.bytes;
  connection.close_when_sent = connection.close_when_sent || answer.close;
  if (answer.repeat.empty()) return;
  while (connection.repeat.size() < piece) connection.repeat += answer.repeat;
  connection.repeats_left = answer.repeat_for / connection.repeat.size();
}

bool ScriptedServer::serve(Connection& connection) {
  std::array<char, 65536> bytes;
  bool ended = false;
  bool more = false;
  while (!ended) {
    const ssize_t n = ::recv(connection.fd.get(), bytes.data(), bytes.size(), MSG_DONTWAIT);
    if (n < 0 && would_block()) break;
    ended = n <= 0;
    if (ended) break;
    more = true;
    current_.received += static_cast<std::uint64_t>(n);
    connection.received.append(bytes.data(), static_cast<std::size_t>(n));
  }
  if (!connection.repeat.empty()) {
    connection.received.clear();  // nothing else is answered
  } else if (more) {
    ask_script(connection);
  }
  return send_what_is_due(connection) && !ended;
}

bool ScriptedServer::send_what_is_due(Connection& connection) {
  if (connection.to_send.empty() && connection.repeats_left > 0) {
    connection.to_send = connection.repeat;
    --connection.repeats_left;
  }
  if (!connection.to_send.empty()) {
    const auto& text = connection.to_send;
    const ssize_t n = ::send(connection.fd.get(), text.data(), text.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (n < 0) return would_block();
    current_.sent += static_cast<std::uint64_t>(n);
    connection.to_send.erase(0, static_cast<std::size_t>(n));
  }
  return !connection.to_send.empty() || !connection.repeat.empty() || !connection.close_when_sent;
}

}  // namespace dlock::test
