// What a worker is to do. Goes to it as a file; the URL does not, since it may have a password: see url_variable.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include <dlock/lock_kind.hpp>

namespace dlock::torture {

// The environment variable that the workers take the URL from.
inline constexpr const char* url_variable = "DLOCK_URL";

struct Plan {
  int process = 1;  // its number in the history
  std::uint64_t seed = 0;
  std::filesystem::path history{};   // file
  std::filesystem::path board{};     // file
  std::filesystem::path resource{};  // socket
  std::size_t seats = 0;             // of the board in all
  std::size_t first_seat = 0;        // this process has so many, one for each thread
  std::size_t threads = 2;
  std::vector<std::string> locks{};
  LockKind lock_kind = LockKind::lock;  // of which kind they are
  std::uint32_t permits = 1;            // of each, where they are semaphores
  std::chrono::nanoseconds lease{};
  bool fixed_leases = false;  // also leases that are not renewed
};

// Throws std::system_error.
void save(const Plan& plan, const std::filesystem::path& file);
// Throws std::runtime_error naming the file.
[[nodiscard]] Plan load_plan(const std::filesystem::path& file);

}  // namespace dlock::torture
