// The lock files of one kind in one directory: opens, locks, reads and writes them. Leases and waiters are the
// caller's.
//
// A plain lock and an election lock the whole file. A writer locks byte 0 alone, a reader shares it; a permit is one of
// so many slots, and all who use the same number of permits share byte 0 (slots.hpp). So the kernel frees what a
// process had when it dies.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include <dlock/spi/try_backend.hpp>

#include "backends/file/client_state.hpp"
#include "backends/file/lock_directory.hpp"
#include "backends/file/slots.hpp"

namespace dlock::file {

// For this long a result is trusted, if inotify would report a change.
constexpr auto trust_time = std::chrono::milliseconds(250);

// The file of one name.
struct LockFile {
  LockKind kind = LockKind::lock;
  std::string name;   // of the lock
  std::string entry;  // in the directory
  std::string path;
  GuardedFd fd = {};
  FileIdentity identity = {};             // of what fd and the leases have open, or had last
  TimePoint found_at = TimePoint::min();  // when the path last led to it
  // What fd has besides the lock: the gate, because a writer waits, or a share in the number of permits.
  bool gate = false;
  bool permits_shared = false;
  std::uint32_t permits = 0;             // of the owners that hold or wait
  TimePoint full_at = TimePoint::min();  // when the last waiter found all permits taken
};

// An acquire on an open file.
struct Attempt {
  std::optional<TryOutcome> outcome = std::nullopt;  // nullopt: the path leads to a different file
  bool retry_soon = false;  // a different client was entering, and no event reports when it has entered
};

[[nodiscard]] inline TryOutcome busy() {
  return {.status = TryOutcome::Status::busy};
}
[[nodiscard]] inline TryOutcome failed(Failure failure) {
  return {.status = TryOutcome::Status::failed, .failure = std::move(failure)};
}
[[nodiscard]] TryOutcome granted(const LockRequest& request, FencingToken token);

class LockFiles {
 public:
  LockFiles(LockKind kind, LockDirectory directory, ClientState& client)
      : kind_(kind), directory_(std::move(directory)), client_(client) {}

  [[nodiscard]] LockKind kind() const noexcept { return kind_; }
  // Whether several owners can hold a lock: then each lease has a descriptor of its own.
  [[nodiscard]] bool several() const noexcept { return kind_ == LockKind::read_write || kind_ == LockKind::semaphore; }
  [[nodiscard]] LockDirectory& directory() noexcept { return directory_; }
  [[nodiscard]] LockFile describe(const std::string& entry, const std::string& name) const {
    return {.kind = kind_, .name = name, .entry = entry, .path = directory_.path_of(entry)};
  }

  // Takes the lock and writes the record, or leaves all as it was. close_gate: if readers hold the lock, keeps further
  // readers out, until close().
  [[nodiscard]] Attempt attempt(LockFile& file, const LockRequest& request, bool close_gate);
  // Answers busy without an event that would wake waiters. nullopt: attempt() must answer.
  [[nodiscard]] std::optional<TryOutcome> peek(const std::string& entry, const LockRequest& request);
  // Whether one of the waiters might get the lock.
  [[nodiscard]] Result<LockState> check_for_waiters(const LockFile& file) const;
  // Unlocks and closes, which wakes waiters in all processes.
  static void close(LockFile& file) noexcept;

 private:
  [[nodiscard]] std::optional<TryOutcome> answer_busy(LockFile& file);
  // Failed if the file belongs to a different name.
  [[nodiscard]] TryOutcome busy_unless_clash(int fd, const std::string& path, const std::string& name) const;
  // Takes the kernel's locks that do not depend on the record.
  [[nodiscard]] Result<LockState> enter(LockFile& file, const LockRequest& request, bool close_gate, Attempt& attempt);
  [[nodiscard]] Result<LockState> enter_to_write(LockFile& file, bool close_gate);
  [[nodiscard]] Result<LockState> enter_beside_others(LockFile& file, const LockRequest& request, Attempt& attempt);
  // Takes the locks that depend on the record; nullopt: with this slot, the lock is the request's.
  [[nodiscard]] std::optional<TryOutcome> take_permit(LockFile& file, const LockRequest& request,
                                                      const ReadRecord* stored, std::uint32_t& slot);
  [[nodiscard]] TryOutcome write(LockFile& file, const LockRequest& request);
  // Gives back what an attempt took but does not need.
  void leave(LockFile& file, const LockRequest& request, TryOutcome::Status status) noexcept;

  const LockKind kind_;
  LockDirectory directory_;
  ClientState& client_;
};

}  // namespace dlock::file
