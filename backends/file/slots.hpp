// The file of a lock that several hold at once: which byte's kernel lock means what, and where each holder has its
// record. docs/backends/file.md promises both.
//
//   byte         | write lock                                | read lock
//   -------------+-------------------------------------------+------------------------------------------------
//   0            | a writer; the one that changes the number | a reader; the one that holds a permit or waits
//                | of permits, for that long                 | for one
//   1            | a client in which a writer waits: new     |
//                | readers stay out                          |
//   2            | one that enters beside others, for that   |
//                | long: mints a token, finds a slot         |
//   4096 + 512 n | the holder in slot n, whose record begins |
//                | there                                     |
//
// Every call is a few system calls on a local file. Any thread.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <dlock/info.hpp>
#include <dlock/spi/backend.hpp>

#include "backends/file/lock_file.hpp"

namespace dlock::file {

inline constexpr ByteRange whole_byte{.begin = 0, .length = 1};
inline constexpr ByteRange gate_byte{.begin = 1, .length = 1};
inline constexpr ByteRange entry_byte{.begin = 2, .length = 1};
// Both that keep a reader out; all that a descriptor may have but the first two.
inline constexpr ByteRange whole_and_gate{.begin = 0, .length = 2};
inline constexpr ByteRange entry_and_slots{.begin = 2, .length = 0};

// No more readers can hold a lock at a time.
inline constexpr std::uint32_t reader_slots = 1U << 20U;

[[nodiscard]] constexpr ByteRange slot_byte(std::uint32_t slot) noexcept {
  return {.begin = static_cast<off_t>(record_end + record_block * std::size_t{slot}), .length = 1};
}

// Takes the entry byte, which others have for some ten microseconds: tries for a few milliseconds. Still busy is
// unusual, for example if a process was stopped while it had the byte.
[[nodiscard]] Result<LockState> begin_entry(int fd, const std::string& path);

// Locks one of the first `slots` for this description; nullopt: all are taken. The caller has the entry byte.
[[nodiscard]] Result<std::optional<std::uint32_t>> take_slot(int fd, const std::string& path, std::uint32_t slots,
                                                             const std::function<std::uint64_t()>& random);
// Whether one of the first `slots` is free.
[[nodiscard]] Result<LockState> look_for_slot(int fd, const std::string& path, std::uint32_t slots);

// The holders by the file, those with the smallest tokens first.
struct SlotHolder {
  HolderInfo info;
  std::int64_t pid = 0;  // 0: the record is just being written
};
[[nodiscard]] Result<std::vector<SlotHolder>> holders_in_slots(int fd, const std::string& path, LockKind kind);

}  // namespace dlock::file
