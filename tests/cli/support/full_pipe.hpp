// A full pipe without a reader: a write to it blocks.
#pragma once

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <stdexcept>
#include <string>
#include <utility>

#include "cli/system.hpp"
#include "torture/rig/hang_guard.hpp"
#include "torture/rig/system_call.hpp"

namespace dlock::cli::test {

class FullPipe {
 public:
  FullPipe() : ends_(make_pipe()) {
    const int flags = this->flags();
    dlock::rig::require(::fcntl(write_end(), F_SETFL, flags | O_NONBLOCK), "fcntl");
    const std::array<char, 4096> filling{};  // of NUL
    while (::write(write_end(), filling.data(), filling.size()) > 0) {
    }
    if (errno != EAGAIN) dlock::rig::require(-1, "write");
    dlock::rig::require(::fcntl(write_end(), F_SETFL, flags), "fcntl");
  }

  [[nodiscard]] int write_end() const { return ends_.second.get(); }
  // Of the open file, which others share.
  [[nodiscard]] int flags() const { return dlock::rig::require(::fcntl(write_end(), F_GETFL), "fcntl"); }

  // Empties it, and reads on until that has come; what came since it was full.
  [[nodiscard]] std::string read_until(const std::string& text) const {
    std::string read;
    while (read.find(text) == std::string::npos) {
      if (!read_some(read)) throw std::runtime_error("the pipe was closed after: " + read);
    }
    return read;
  }

  // Reads until all writers are gone.
  void drain() {
    ends_.second.reset();
    for (std::string read; read_some(read);) {
    }
  }

 private:
  // False: there are no writers any more.
  bool read_some(std::string& read) const {
    pollfd source{.fd = ends_.first.get(), .events = POLLIN, .revents = 0};
    if (::poll(&source, 1, dlock::rig::hang_guard_ms) != 1) throw std::runtime_error("hang: so far: " + read);
    std::array<char, 4096> bytes;
    const auto size = dlock::rig::require(::read(ends_.first.get(), bytes.data(), bytes.size()), "read");
    read.append(bytes.data(), static_cast<std::size_t>(size));
    std::erase(read, '\0');
    return size > 0;
  }

  std::pair<UniqueFd, UniqueFd> ends_;
};

}  // namespace dlock::cli::test
