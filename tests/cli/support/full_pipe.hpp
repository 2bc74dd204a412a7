// A pipe that is full, and that nobody reads until drain(): whoever writes into it is held up.
#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <string>
#include <vector>

#include "cli/system.hpp"
#include "cli/unique_fd.hpp"

namespace dlock::cli::test {

class FullPipe {
 public:
  FullPipe() {
    auto [read_end, write_end] = make_pipe();
    check(::fcntl(write_end.get(), F_SETFL, O_NONBLOCK), "fcntl");
    const std::string block(4096, '.');
    while (::write(write_end.get(), block.data(), block.size()) > 0) {
    }
    check(::fcntl(write_end.get(), F_SETFL, 0), "fcntl");
    read_ = std::move(read_end);
    write_ = std::move(write_end);
  }

  // To be passed on to the process that runs this: the command with the pipe as its standard error.
  [[nodiscard]] int fd() const noexcept { return write_.get(); }
  [[nodiscard]] std::vector<std::string> as_standard_error_of(std::vector<std::string> command) const {
    command.insert(command.begin(), {"sh", "-c", "exec \"$@\" 2>&" + std::to_string(fd()), "sh"});
    return command;
  }

  // Reads until all writers are gone.
  void drain() {
    write_.reset();
    std::array<char, 4096> bytes;
    while (::read(read_.get(), bytes.data(), bytes.size()) > 0) {
    }
  }

 private:
  UniqueFd read_;
  UniqueFd write_;
};

}  // namespace dlock::cli::test
