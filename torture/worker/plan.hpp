// A worker's task, passed in a file; except the URL, which may have a password: see url_variable.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include <dlock/lock_kind.hpp>

namespace dlock::torture {

// The environment variable with the workers' URL.
inline constexpr const char* url_variable = "DLOCK_URL";

struct Plan {
  int process = 1;  // its number in the history
  std::uint64_t seed = 0;
  std::filesystem::path history{};   // file
  std::filesystem::path board{};     // file
  std::filesystem::path resource{};  // socket
  std::size_t seats = 0;             // of the whole board
  std::size_t first_seat = 0;        // the first of this process, which has one for each thread
  std::size_t threads = 2;
  std::vector<std::string> locks{};
  LockKind lock_kind = LockKind::lock;  // the kind of all locks
  std::uint32_t permits = 1;            // of each semaphore
  std::chrono::nanoseconds lease{};
  bool fixed_leases = false;  // some leases are not renewed
};

// Throws std::system_error.
void save(const Plan& plan, const std::filesystem::path& file);
// Throws std::runtime_error with the file's name.
[[nodiscard]] Plan load_plan(const std::filesystem::path& file);

}  // namespace dlock::torture
