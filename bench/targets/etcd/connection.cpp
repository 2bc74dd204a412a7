#include "bench/targets/etcd/connection.hpp"

#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <optional>
#include <stdexcept>

#include "backends/etcd/wire/protobuf.hpp"
#include "bench/targets/service_target.hpp"
#include "torture/rig/network.hpp"

namespace dlock::bench {

namespace {

using etcd::MessageReader;
using etcd::MessageWriter;

[[noreturn]] void fail(const std::string& what) {
  throw std::runtime_error("etcd: " + what);
}

std::string authority_of(const rig::HostPort& host) {
  const bool bare = host.name.find(':') == std::string::npos;
  return (bare ? host.name : "[" + host.name + "]") + ":" + std::to_string(host.port);
}

// AuthenticateResponse.token
std::string token_in(std::string_view answer) {
  MessageReader reader(answer);
  std::string token;
  while (reader.next()) {
    if (reader.field() == 2) token = reader.bytes();
  }
  if (reader.broken() || token.empty()) fail("the answer to the login has no token");
  return token;
}

}  // namespace

std::vector<rig::HostPort> etcd_hosts(const rig::UrlText& url) {
  return url.hosts({.name = "localhost", .port = 2379});
}

EtcdConnection::EtcdConnection(const rig::UrlText& url) {
  const bool secure = url.original().scheme() == "etcds";
  std::string problem;
  rig::HostPort reached{};
  for (const rig::HostPort& each : etcd_hosts(url)) {
    try {
      socket_ = rig::connect_to(each, answer_limit);
      reached = each;
      break;
    } catch (const std::runtime_error& error) {
      problem = error.what();
    }
  }
  if (!socket_) fail(problem);
  if (secure) shake_hands(reached.name, url);
  grpc_ = std::make_unique<etcd::Grpc>(authority_of(reached), secure);
  metadata_ = {{"hasleader", "true"}};
  const auto& user = url.original().user();
  if (!user || user->empty()) return;
  const std::string request = MessageWriter().bytes(1, *user).bytes(2, url.password().value_or("")).take();
  metadata_.emplace_back("token", token_in(call("/etcdserverpb.Auth/Authenticate", request)));
}

void EtcdConnection::shake_hands(const std::string& host, const rig::UrlText& url) {
  const auto file = [&](const char* name) { return url.parameter(name).value_or(""); };
  const auto context = common::make_tls_context(
      {.ca_file = file("tls_ca"), .cert_file = file("tls_cert"), .key_file = file("tls_key"), .protocol = "h2"});
  tls_ = context->filter(host);
  std::string plain;
  for (bool done = false; !done;) {
    done = tls_->handshake();
    std::string output;
    tls_->take_output(output);
    write_all(output);
    if (tls_->failure().code) fail("TLS: " + tls_->failure().detail);
    if (!done && !tls_->decrypt(read_some(), plain)) fail("TLS: " + tls_->failure().detail);
  }
}

void EtcdConnection::write_all(std::string_view bytes) const {
  while (!bytes.empty()) {
    const ssize_t n = ::send(socket_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) fail("the connection breaks");
    bytes.remove_prefix(static_cast<std::size_t>(n));
  }
}

std::string EtcdConnection::read_some() const {
  std::array<char, 16384> bytes;
  for (;;) {
    const ssize_t n = ::recv(socket_.get(), bytes.data(), bytes.size(), 0);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) fail("the server closes the connection");
    return {bytes.data(), static_cast<std::size_t>(n)};
  }
}

void EtcdConnection::flush() {
  std::string output;
  grpc_->take_output(output);
  if (output.empty()) return;
  if (tls_) {
    if (!tls_->encrypt(output)) fail("TLS: " + tls_->failure().detail);
    output.clear();
    tls_->take_output(output);
  }
  write_all(output);
}

void EtcdConnection::receive() {
  std::string bytes = read_some();
  if (tls_) {
    std::string plain;
    if (!tls_->decrypt(bytes, plain)) fail("TLS: " + tls_->failure().detail);
    bytes = std::move(plain);
  }
  if (!grpc_->receive(bytes)) fail(grpc_->problem());
}

std::string EtcdConnection::call(std::string_view path, std::string_view request) {
  const auto id = grpc_->begin(path, metadata_);
  if (id == 0) fail("the server closes the connection");
  grpc_->send(id, request, true);
  std::string answer;
  for (;;) {
    flush();
    receive();
    while (std::optional<etcd::Grpc::Event> event = grpc_->next()) {
      if (event->call != id) continue;
      if (event->message) {
        answer = std::move(*event->message);
      } else if (event->status.code != 0) {
        fail(event->status.message);
      } else {
        return answer;
      }
    }
  }
}

}  // namespace dlock::bench
