// The record in a lock file: a block of 512 bytes of text and, behind it, the lock's name on a line of its
// own. docs/backends/file.md shows one and promises the format.
//
// The block is one sector, so a disk that loses power keeps the old one or the new one. The name is written once, when
// the file gets its first record. The first line says which kind of lock it is. Where several hold a lock, the block is
// the last one's, and each of them has another of the same form in a slot of its own. No I/O here; plain functions, any
// thread.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include <dlock/lock_kind.hpp>
#include <dlock/token.hpp>

namespace dlock::file {

inline constexpr std::size_t record_block = 512;
// No record is longer: the block and a name of 512 bytes, each of them escaped.
inline constexpr std::size_t max_record = record_block + 5 + 3 * 512 + 1;
// The offset of the slots, or of the value of an election.
inline constexpr std::size_t record_end = 4096;
// The longest value of an election, in bytes, and what is written of it.
inline constexpr std::size_t max_value = 1024;
inline constexpr std::size_t max_value_text = 6 + 32 + 1 + 6 + 3 * max_value + 1 + 9 + 32 + 1;

struct LockRecord {
  std::uint64_t token = 0;
  OwnerId owner = {};
  std::string holder = {};
  std::int64_t pid = 0;
  std::int64_t since = 0;     // microseconds of wall time
  std::uint32_t permits = 0;  // of a semaphore
};

struct NoRecord {};  // never granted: empty, or only zero bytes, as a power failure leaves a new file
struct BadRecord {
  std::string reason;
};
struct ReadRecord {
  LockRecord record;
  std::string name_hash;
  std::optional<std::string> name;  // nullopt: not wholly written, because power or space ran out

  [[nodiscard]] bool belongs_to(std::string_view lock_name) const;
};

using RecordContent = std::variant<NoRecord, ReadRecord, BadRecord>;

// Exactly record_block bytes. A holder too long for the block is cut at a whole character.
[[nodiscard]] std::string format_block(const LockRecord& record, std::string_view lock_name,
                                       LockKind kind = LockKind::lock);
[[nodiscard]] std::string format_name_line(std::string_view lock_name);

[[nodiscard]] RecordContent parse_record(std::string_view content, LockKind kind = LockKind::lock);

// The value of a leader, valid with the record of the same owner.
[[nodiscard]] std::string format_value(const OwnerId& owner, std::string_view value);
// nullopt: there is none, it is another owner's, or it is just being written.
[[nodiscard]] std::optional<std::string> parse_value(std::string_view text, const OwnerId& owner);

// max(stored + 1, wall clock in microseconds), so that tokens grow even when the file was deleted in between; nullopt
// when that would leave the range below 2^63.
[[nodiscard]] std::optional<std::uint64_t> next_token(std::uint64_t stored,
                                                      std::chrono::system_clock::time_point wall) noexcept;

[[nodiscard]] std::int64_t microseconds(std::chrono::system_clock::time_point wall) noexcept;

}  // namespace dlock::file
