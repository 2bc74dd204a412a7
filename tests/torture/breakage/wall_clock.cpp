#include "tests/torture/breakage/wall_clock.hpp"

#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <system_error>

#include "tests/support/sanitizers.hpp"

namespace dlock::torture {
namespace {

namespace fs = std::filesystem;

// Debian has a directory of libraries for each architecture.
std::string find_library() {
  const std::string name = "faketime/libfaketimeMT.so.1";
  std::error_code none;  // a directory that cannot be read has no library for us
  for (const char* place : {"/usr/lib", "/usr/local/lib", "/usr/lib64"}) {
    if (fs::exists(fs::path(place) / name, none)) return fs::path(place) / name;
    for (const auto& entry : fs::directory_iterator(place, none)) {
      if (fs::exists(entry.path() / name, none)) return entry.path() / name;
    }
  }
  return {};
}

}  // namespace

bool WallClock::available(std::string& why_not) {
  if (dlock::test::sanitized) {
    why_not = "sanitizers and libfaketime replace the same functions";
    return false;
  }
  if (find_library().empty()) {
    why_not = "libfaketimeMT.so.1 is not found (Debian: package faketime)";
    return false;
  }
  return true;
}

WallClock::WallClock(const std::string& directory) : library_(find_library()), file_(directory + "/wall-clock-offset") {
  std::string why_not;
  if (!available(why_not)) throw std::runtime_error("no wall clock to step: " + why_not);
  write();
}

WallClock::~WallClock() {
  std::error_code ignored;  // the owner of the directory removes it
  fs::remove(file_, ignored);
}

std::vector<std::string> WallClock::variables() const {
  // Without a cache the file is read at each look at the clock. Times of files are the kernel's, and stay so.
  return {fmt::format("LD_PRELOAD={}:{}", DLOCK_REAL_TIMERS, library_), "FAKETIME_TIMESTAMP_FILE=" + file_,
          "FAKETIME_NO_CACHE=1", "FAKETIME_DONT_FAKE_MONOTONIC=1", "NO_FAKE_STAT=1"};
}

void WallClock::step(std::chrono::seconds by) {
  offset_ += by;
  write();
}

void WallClock::write() const {
  const std::string next = file_ + ".next";
  {
    std::ofstream out(next, std::ios::trunc);
    out << (offset_.count() < 0 ? "" : "+") << offset_.count() << '\n';
    out.flush();
    if (!out) throw std::system_error(errno, std::generic_category(), "cannot write " + next);
  }
  fs::rename(next, file_);  // at once: the clock is never half a number
}

void WallClock::remove_traces(pid_t child) noexcept {
  // Both fail where it has removed them itself.
  (void)::shm_unlink(("/faketime_shm_" + std::to_string(child)).c_str());
  (void)::shm_unlink(("/sem.faketime_sem_" + std::to_string(child)).c_str());
}

}  // namespace dlock::torture
