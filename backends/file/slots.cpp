#include "backends/file/slots.hpp"

#include <sched.h>

#include <algorithm>
#include <chrono>
#include <limits>
#include <utility>
#include <variant>

namespace dlock::file {

Result<LockState> begin_entry(int fd, const std::string& path) {
  constexpr int attempts = 2000;  // a few milliseconds, but where others want the processor, seconds
  const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(20);
  for (int i = 0; i < attempts; ++i) {
    auto lock = take_lock(fd, path, LockType::write, entry_byte);
    if (!lock.ok() || lock.value() == LockState::free) return lock;
    if (std::chrono::steady_clock::now() >= end) break;
    (void)::sched_yield();  // cannot fail
  }
  return LockState::busy;
}

// A file with few holders is to be small, and one with many must not be searched from its beginning each time.
Result<std::optional<std::uint32_t>> take_slot(int fd, const std::string& path, std::uint32_t slots,
                                               const std::function<std::uint64_t()>& random) {
  constexpr std::uint64_t few = 4;
  std::optional<Failure> problem;
  const auto take = [&](std::uint64_t slot) {
    auto lock = take_lock(fd, path, LockType::write, slot_byte(static_cast<std::uint32_t>(slot)));
    if (!lock.ok()) problem = lock.failure();
    return problem || lock.value() == LockState::free;
  };
  std::uint64_t slot = 0;
  bool found = false;
  for (std::uint64_t range = few; !found && range < slots; range *= 2) {
    slot = random() % range;
    found = take(slot);
  }
  if (!found) {
    for (slot = 0; slot < slots && !take(slot); ++slot) {
    }
  }
  if (problem) return *problem;
  if (slot == slots) return std::optional<std::uint32_t>();
  return std::optional<std::uint32_t>(static_cast<std::uint32_t>(slot));
}

Result<LockState> look_for_slot(int fd, const std::string& path, std::uint32_t slots) {
  for (std::uint32_t slot = 0; slot < slots; ++slot) {
    auto lock = look_at_lock(fd, path, LockType::write, slot_byte(slot));
    if (!lock.ok() || lock.value() == LockState::free) return lock;
  }
  return LockState::busy;
}

Result<std::vector<SlotHolder>> holders_in_slots(int fd, const std::string& path, LockKind kind) {
  auto whole = find_lock(fd, path, LockType::write, whole_byte);
  if (!whole.ok()) return whole.failure();
  const bool writing = kind == LockKind::read_write && whole.value() && whole.value()->type == LockType::write;
  std::vector<SlotHolder> holders;
  // The kernel names one lock of a range at a time, in no order: what lies before it and behind it is asked about next.
  constexpr off_t end = std::numeric_limits<off_t>::max();
  std::vector<std::pair<off_t, off_t>> ranges{{static_cast<off_t>(record_end), end}};
  while (!ranges.empty()) {
    const auto [from, to] = ranges.back();
    ranges.pop_back();
    if (from >= to) continue;
    auto found = find_lock(fd, path, LockType::write, {.begin = from, .length = to == end ? 0 : to - from});
    if (!found.ok()) return found.failure();
    if (!found.value()) continue;
    const ByteRange at = found.value()->range;
    ranges.emplace_back(from, at.begin);
    if (at.length != 0) ranges.emplace_back(at.begin + at.length, to);
    if (at.length != 1) continue;  // no slot: a lock on the whole file
    SlotHolder holder;
    holder.info.mode = kind != LockKind::read_write || writing ? Mode::exclusive : Mode::shared;
    auto content = parse_record(read_text(fd, at.begin, record_block), kind);
    if (auto* const read = std::get_if<ReadRecord>(&content)) {
      holder.info.holder = std::move(read->record.holder);
      holder.info.token = FencingToken(read->record.token);
      holder.pid = read->record.pid;
    }
    holders.push_back(std::move(holder));
  }
  std::ranges::sort(holders, {}, [](const SlotHolder& each) { return each.info.token; });
  return holders;
}

}  // namespace dlock::file
