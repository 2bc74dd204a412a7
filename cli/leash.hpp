// Ends "dlock hold" together with its caller, by the caller's end of a pipe or by its process.
#pragma once

#include <sys/types.h>

#include <memory>
#include <optional>

#include "cli/system.hpp"

namespace dlock::cli {

class Leash {
 public:
  struct Ends {
    bool with_input = false;  // when standard input ends; input before that is discarded
    std::optional<pid_t> with_process = std::nullopt;
  };
  // With `pinned`, the process is watched by a pidfd if the system has them. Throws UsageError if there is no such
  // process, std::system_error when the system refuses a thread.
  explicit Leash(const Ends& ends, bool pinned = true);

  // Readable once one of them has ended; never, if there is none.
  [[nodiscard]] int ended_fd() const noexcept { return ended_->fd(); }

 private:
  std::shared_ptr<const Event> ended_ = std::make_shared<const Event>();
};

}  // namespace dlock::cli
