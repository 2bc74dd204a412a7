#include "torture/worker/resource.hpp"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <system_error>
#include <utility>

#include "torture/rig/system_call.hpp"

namespace dlock::torture {
namespace {

constexpr int backlog = 128;

sockaddr_un address_of(const std::filesystem::path& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::string text = path.string();
  if (text.size() >= sizeof(address.sun_path)) {
    throw std::system_error(std::make_error_code(std::errc::filename_too_long), text);
  }
  std::memcpy(address.sun_path, text.c_str(), text.size() + 1);
  return address;
}

// A socket that preserves messages, so that a client that is killed while it sends leaves none incomplete.
util::UniqueFd new_socket() {
  util::UniqueFd fd(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  if (!fd) rig::fail("socket");
  return fd;
}

const sockaddr* generic(const sockaddr_un& address) {
  return reinterpret_cast<const sockaddr*>(&address);  // as the functions for sockets require it
}

}  // namespace

Resource::Resource(const std::filesystem::path& socket, const std::filesystem::path& history,
                   std::vector<std::string> locks, LockKind lock_kind)
    : locks_(std::move(locks)),
      lock_kind_(lock_kind),
      newest_(locks_.size()),
      newest_write_(locks_.size()),
      history_(history),
      listening_(new_socket()),
      stop_(::eventfd(0, EFD_CLOEXEC)) {
  const sockaddr_un address = address_of(socket);
  if (!stop_) rig::fail("eventfd");
  if (::bind(listening_.get(), generic(address), sizeof(address)) != 0) rig::fail(socket.string());
  if (::listen(listening_.get(), backlog) != 0) rig::fail(socket.string());
  thread_ = std::jthread([this] { serve(); });
}

Resource::~Resource() {
  const std::uint64_t one = 1;
  (void)!::write(stop_.get(), &one, sizeof(one));  // cannot fail: the counter is 0
}

void Resource::serve() {
  std::vector<util::UniqueFd> clients;
  for (;;) {
    std::vector<pollfd> sources{{.fd = stop_.get(), .events = POLLIN, .revents = 0},
                                {.fd = listening_.get(), .events = POLLIN, .revents = 0}};
    for (const auto& client : clients) sources.push_back({.fd = client.get(), .events = POLLIN, .revents = 0});
    if (::poll(sources.data(), sources.size(), -1) < 0) continue;  // interrupted
    if (sources[0].revents != 0) return;
    for (std::size_t i = clients.size(); i-- > 0;) {
      if (sources[i + 2].revents != 0 && !answer(clients[i].get())) {
        clients.erase(clients.begin() + static_cast<std::ptrdiff_t>(i));
      }
    }
    if (sources[1].revents != 0) {
      util::UniqueFd client(::accept4(listening_.get(), nullptr, nullptr, SOCK_CLOEXEC));
      if (client) clients.push_back(std::move(client));
    }
  }
}

bool Resource::answer(int client) {
  AccessRequest request{};
  if (::recv(client, &request, sizeof(request), 0) != static_cast<ssize_t>(sizeof(request))) return false;
  if (request.lock >= locks_.size()) return false;
  const FencingToken token(request.token);
  FencingToken& newest = newest_[request.lock];
  FencingToken& newest_write = newest_write_[request.lock];
  const bool reads = request.mode == Mode::shared;
  const bool taken = token >= (reads ? newest_write : newest);
  if (taken) newest = std::max(newest, token);
  if (taken && !reads) newest_write = token;
  history_.note({.at = LeaseClock::now(),
                 .kind = Kind::served,
                 .lock = locks_[request.lock],
                 .lock_kind = lock_kind_,
                 .mode = request.mode,
                 .token = token,
                 .yes = taken});
  const std::uint8_t answer = taken ? 1 : 0;
  return ::send(client, &answer, sizeof(answer), MSG_NOSIGNAL) == static_cast<ssize_t>(sizeof(answer));
}

ResourceClient::ResourceClient(const std::filesystem::path& socket) : socket_(new_socket()) {
  const sockaddr_un address = address_of(socket);
  if (::connect(socket_.get(), generic(address), sizeof(address)) != 0) rig::fail(socket.string());
}

bool ResourceClient::access(std::size_t lock, Mode mode, FencingToken token) {
  const AccessRequest request{.token = token.value(), .lock = static_cast<std::uint32_t>(lock), .mode = mode};
  if (::send(socket_.get(), &request, sizeof(request), MSG_NOSIGNAL) < 0) rig::fail("send to the resource");
  std::uint8_t taken = 0;
  ssize_t n = 0;
  do {
    n = ::recv(socket_.get(), &taken, sizeof(taken), 0);
  } while (n < 0 && errno == EINTR);
  if (n != static_cast<ssize_t>(sizeof(taken))) rig::fail("the resource does not answer");
  return taken != 0;
}

}  // namespace dlock::torture
