#include "util/resolver.hpp"

#include <netdb.h>
#include <netinet/in.h>

#include <array>
#include <chrono>
#include <cstddef>
#include <cstring>
#include <exception>
#include <map>
#include <new>
#include <optional>
#include <thread>
#include <utility>

#include <dlock/duration.hpp>
#include <dlock/spi/backoff.hpp>

#include "util/mutex.hpp"
#include "util/per_process.hpp"
#include "util/signals_blocked.hpp"

namespace dlock::util {

namespace {

using Answer = Result<Addresses>;

// A name server that works again is used after this time at the latest.
constexpr std::chrono::seconds longest_pause{2};
// A failure that is older does not lengthen pauses any more.
constexpr std::chrono::minutes failures_count_for{1};

struct FreeAddresses {
  void operator()(addrinfo* list) const noexcept { freeaddrinfo(list); }
};

Answer look_up(const std::string& host, int flags) {
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = flags;
  addrinfo* raw = nullptr;
  const int error = getaddrinfo(host.c_str(), nullptr, &hints, &raw);
  const std::unique_ptr<addrinfo, FreeAddresses> list(raw);
  if (error != 0) return Failure{errc::unavailable, "cannot resolve host \"" + host + "\": " + gai_strerror(error)};
  Addresses addresses;
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

void set_port(Address& address, std::uint16_t port) {
  // At the same place in the addresses of both families.
  static_assert(offsetof(sockaddr_in, sin_port) == offsetof(sockaddr_in6, sin6_port));
  const in_port_t number = htons(port);
  std::memcpy(reinterpret_cast<char*>(&address.storage) + offsetof(sockaddr_in, sin_port), &number, sizeof number);
}

}  // namespace

std::string Address::to_string() const {
  std::array<char, NI_MAXHOST> text{};
  const int error = getnameinfo(get(), length, text.data(), text.size(), nullptr, 0, NI_NUMERICHOST);
  return error == 0 ? std::string(text.data()) : "?";
}

// Shared by a Resolution and the resolver's thread. The executor may be gone once the answer is not wanted.
struct Resolution::Shared {
  Mutex mutex;
  Executor* executor DLOCK_GUARDED_BY(mutex) = nullptr;
  std::uint16_t port = 0;
  Handler done;  // in tasks only

  static void answer(const std::shared_ptr<Shared>& self, Answer answer) {
    if (answer.ok()) {
      for (Address& each : answer.value()) set_port(each, self->port);
    }
    const MutexLock lock(self->mutex);
    if (self->executor == nullptr) return;
    self->executor->post([self, answer = std::move(answer)] {
      if (const auto handler = std::exchange(self->done, nullptr)) handler(answer);
    });
  }
};

// --- Resolver --------------------------------------------------------------------------------------------------------

class Resolver::Names : public std::enable_shared_from_this<Names> {
 public:
  Names(LookUp look_up, std::shared_ptr<const Clock> clock) : look_up_(std::move(look_up)), clock_(std::move(clock)) {}

  void request(Executor& executor, const std::string& host, const std::shared_ptr<Resolution::Shared>& from) {
    std::optional<Failure> why;
    {
      const MutexLock lock(mutex_);
      const TimePoint now = clock_->now();
      std::erase_if(names_, [now](const auto& each) {
        return !each.second.in_flight && now >= saturating_add(each.second.not_before, failures_count_for);
      });
      Name& name = names_[host];
      if (name.in_flight || now >= name.not_before) {
        std::erase_if(name.waiting, [](const auto& each) { return each.expired(); });
        name.waiting.push_back(from);
        if (std::exchange(name.in_flight, true)) return;
        name.pause = name.backoff.next(executor);
      } else {
        why = name.why;
      }
    }
    if (why) return Resolution::Shared::answer(from, *std::move(why));
    start(host);
  }

 private:
  struct Name {
    bool in_flight = false;
    std::vector<std::weak_ptr<Resolution::Shared>> waiting = {};
    Backoff backoff{longest_pause};
    std::chrono::nanoseconds pause{};  // after the look-up in flight, if it fails
    TimePoint not_before = TimePoint::min();
    Failure why = {};
  };

  void start(const std::string& host) {
    const SignalsBlocked blocked;
    try {
      std::thread([self = shared_from_this(), host] { self->run(host); }).detach();
    } catch (const std::exception& e) {  // too many threads, or out of memory
      finish(host, Failure{errc::unavailable, std::string("cannot start a thread to resolve: ") + e.what()});
    }
  }

  void run(const std::string& host) noexcept {
    try {
      finish(host, look_up_(host));
    } catch (const std::bad_alloc&) {
      // Without the memory to answer: each request's deadline ends its wait.
      const MutexLock lock(mutex_);
      names_.erase(host);
    }
  }

  void finish(const std::string& host, const Answer& answer) {
    std::vector<std::weak_ptr<Resolution::Shared>> waiting;
    {
      const MutexLock lock(mutex_);
      Name& name = names_[host];
      waiting = std::exchange(name.waiting, {});
      name.in_flight = false;
      if (answer.ok()) {
        names_.erase(host);
      } else {
        name.why = answer.failure();
        name.not_before = saturating_add(clock_->now(), name.pause);
      }
    }
    for (const auto& each : waiting) {
      if (const auto request = each.lock()) Resolution::Shared::answer(request, answer);
    }
  }

  const LookUp look_up_;
  const std::shared_ptr<const Clock> clock_;
  Mutex mutex_;
  std::map<std::string, Name> names_ DLOCK_GUARDED_BY(mutex_);
};

Resolver::Resolver() : Resolver([](const std::string& host) { return look_up(host, 0); }, boottime_clock()) {}

Resolver::Resolver(LookUp look_up, std::shared_ptr<const Clock> clock)
    : names_(std::make_shared<Names>(std::move(look_up), std::move(clock))) {}

Resolver& Resolver::of_process() {
  static constinit PerProcess<Resolver> resolver;
  return resolver.get();
}

// --- Resolution ------------------------------------------------------------------------------------------------------

Resolution::Resolution(Executor& executor, const std::string& host, std::uint16_t port, Handler done,
                       Resolver& resolver)
    : shared_(std::make_shared<Shared>()) {
  {
    const MutexLock lock(shared_->mutex);
    shared_->executor = &executor;
  }
  shared_->port = port;
  shared_->done = std::move(done);
  if (Answer numeric = look_up(host, AI_NUMERICHOST); numeric.ok()) {
    Shared::answer(shared_, std::move(numeric));
    return;
  }
  resolver.names_->request(executor, host, shared_);
}

Resolution::~Resolution() {
  shared_->done = nullptr;
  const MutexLock lock(shared_->mutex);
  shared_->executor = nullptr;
}

}  // namespace dlock::util
