#include "util/resolver.hpp"

#include <netdb.h>

#include <array>
#include <cstring>
#include <new>
#include <thread>
#include <utility>

#include "util/mutex.hpp"
#include "util/signals_blocked.hpp"

namespace dlock::util {

namespace {

using Answer = Result<std::vector<Address>>;

struct FreeAddresses {
  void operator()(addrinfo* list) const noexcept { freeaddrinfo(list); }
};

Answer look_up(const std::string& host, const std::string& port, int flags) {
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_NUMERICSERV | flags;
  addrinfo* raw = nullptr;
  const int error = getaddrinfo(host.c_str(), port.c_str(), &hints, &raw);
  const std::unique_ptr<addrinfo, FreeAddresses> list(raw);
  if (error != 0) return Failure{errc::unavailable, "cannot resolve host \"" + host + "\": " + gai_strerror(error)};
  std::vector<Address> addresses;
  for (const addrinfo* at = list.get(); at != nullptr; at = at->ai_next) {
    if (at->ai_addrlen > sizeof(sockaddr_storage)) continue;
    Address& address = addresses.emplace_back();
    std::memcpy(&address.storage, at->ai_addr, at->ai_addrlen);
    address.length = at->ai_addrlen;
    address.family = at->ai_family;
  }
  if (addresses.empty()) return Failure{errc::unavailable, "host \"" + host + "\" has no address"};
  return addresses;
}

}  // namespace

std::string Address::to_string() const {
  std::array<char, NI_MAXHOST> text{};
  const int error = getnameinfo(get(), length, text.data(), text.size(), nullptr, 0, NI_NUMERICHOST);
  return error == 0 ? std::string(text.data()) : "?";
}

// Shared by the asker and the thread. The executor may be gone once the answer is not wanted.
struct Resolution::Shared {
  Mutex mutex;
  Executor* executor DLOCK_GUARDED_BY(mutex) = nullptr;
  Handler done;  // in tasks only

  static void answer(const std::shared_ptr<Shared>& self, Answer answer) {
    const MutexLock lock(self->mutex);
    if (self->executor == nullptr) return;
    self->executor->post([self, answer = std::move(answer)] {
      if (const auto handler = std::exchange(self->done, nullptr)) handler(answer);
    });
  }
  // Without the memory to say so: the asker's deadline ends its wait.
  static void give_up(const std::shared_ptr<Shared>& self) noexcept {
    const MutexLock lock(self->mutex);
    self->executor = nullptr;
  }
};

Resolution::Resolution(Executor& executor, const std::string& host, std::uint16_t port, Handler done)
    : shared_(std::make_shared<Shared>()) {
  {
    const MutexLock lock(shared_->mutex);
    shared_->executor = &executor;
  }
  shared_->done = std::move(done);
  const std::string service = std::to_string(port);
  if (Answer numeric = look_up(host, service, AI_NUMERICHOST); numeric.ok()) {
    Shared::answer(shared_, std::move(numeric));
    return;
  }
  const SignalsBlocked blocked;
  try {
    std::thread([shared = shared_, host, service] {
      try {
        Shared::answer(shared, look_up(host, service, 0));
      } catch (const std::bad_alloc&) {
        Shared::give_up(shared);
      }
    }).detach();
  } catch (const std::system_error& e) {
    Shared::answer(shared_, Failure{errc::unavailable, std::string("cannot start a thread to resolve: ") + e.what()});
  }
}

Resolution::~Resolution() {
  shared_->done = nullptr;
  const MutexLock lock(shared_->mutex);
  shared_->executor = nullptr;
}

}  // namespace dlock::util
