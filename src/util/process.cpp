#include "util/process.hpp"

#include <errno.h>
#include <pthread.h>
#include <sys/random.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <memory>
#include <optional>
#include <string_view>
#include <system_error>

#include <dlock/error.hpp>

#include "util/splitmix.hpp"

namespace dlock::util {

namespace {

std::atomic<std::uint64_t>& generation() noexcept {
  static std::atomic<std::uint64_t> value{0};
  return value;
}

void count_fork() noexcept {
  generation().fetch_add(1, std::memory_order_relaxed);
}

// A handler can only be registered, never removed: once a process.
const int fork_handler_registered = pthread_atfork(nullptr, nullptr, count_fork);

std::string printable(std::string_view text, std::string_view otherwise) {
  std::string out;
  for (const char c : text) {
    if (c > ' ' && c < 0x7f && c != ':') out.push_back(c);
  }
  return out.empty() ? std::string(otherwise) : out;
}

}  // namespace

std::uint64_t fork_generation() noexcept {
  (void)fork_handler_registered;
  return generation().load(std::memory_order_relaxed);
}

std::string host_name() {
  std::array<char, 256> buffer{};
  if (gethostname(buffer.data(), buffer.size() - 1) != 0) return "localhost";
  return printable(buffer.data(), "localhost");
}

std::string program_name() {
  return printable(program_invocation_short_name, "dlock");
}

int process_id() noexcept {
  return getpid();
}

namespace {

// nullopt: the kernel refuses, and errno says why.
std::optional<std::uint64_t> draw() noexcept {
  // A child made by fork() must not use the parent's numbers, so the pool has a generation.
  struct Pool {
    std::array<std::uint64_t, 32> bits;  // 256 bytes: the most that getrandom() never cuts short
    std::size_t used = std::tuple_size_v<decltype(bits)>;
    std::uint64_t generation = 0;
  };
  thread_local Pool pool;
  if (pool.used == pool.bits.size() || pool.generation != fork_generation()) {
    ssize_t got = 0;
    do {
      got = getrandom(pool.bits.data(), sizeof pool.bits, 0);
    } while (got < 0 && errno == EINTR);
    if (got != static_cast<ssize_t>(sizeof pool.bits)) return std::nullopt;
    pool.used = 0;
    pool.generation = fork_generation();
  }
  return pool.bits[pool.used++];
}

}  // namespace

std::uint64_t kernel_random() {
  if (const auto bits = draw()) return *bits;
  throw Error(errc::unavailable, "the kernel gave no random numbers: " + std::system_category().message(errno));
}

std::function<std::uint64_t()> kernel_random_or_derived() {
  return [steps = std::make_shared<std::atomic<std::uint64_t>>(kernel_random()), key = kernel_random()]() {
    if (const auto bits = draw()) return *bits;
    std::uint64_t state = steps->fetch_add(splitmix_step);
    state = splitmix(state) ^ key;
    return splitmix(state);
  };
}

}  // namespace dlock::util
