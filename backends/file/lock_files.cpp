#include "backends/file/lock_files.hpp"

#include <unistd.h>

#include <utility>

namespace dlock::file {

TryOutcome granted(const LockRequest& request, FencingToken token) {
  return {.status = TryOutcome::Status::granted,
          .grant = {.name = request.name,
                    .owner = request.owner,
                    .token = token,
                    .valid_until = TimePoint::max(),
                    .lease = request.lease,
                    .kind = request.kind,
                    .mode = request.mode}};
}

Attempt LockFiles::attempt(LockFile& file, const LockRequest& request, bool close_gate) {
  Attempt attempt;
  ++client_.kernel_tries;
  auto lock = enter(file, request, close_gate, attempt);
  if (!lock.ok()) {
    attempt.outcome = failed(lock.failure());
  } else if (lock.value() == LockState::busy) {
    attempt.outcome = answer_busy(file);
  } else {
    auto found = find_file(file.path);
    if (found.ok() && found.value() != file.identity) return attempt;
    attempt.outcome = found.ok() ? write(file, request) : failed(found.failure());
    // The descriptor stays open while a waiter is left: closing it would wake every waiter to the same failure.
    if (attempt.outcome->status != TryOutcome::Status::granted) leave(file, request, attempt.outcome->status);
  }
  return attempt;
}

std::optional<TryOutcome> LockFiles::answer_busy(LockFile& file) {
  if (file.found_at != TimePoint::min() && client_.now() - file.found_at < trust_time) return busy();
  // A different process may hold the lock of a file that no path leads to any more.
  auto found = find_file(file.path);
  if (found.ok() && found.value() != file.identity) return std::nullopt;
  file.found_at = client_.now();
  return busy_unless_clash(file.fd.get(), file.path, file.name);
}

TryOutcome LockFiles::busy_unless_clash(int fd, const std::string& path, const std::string& name) const {
  auto content = read_content(fd, path, kind_);
  // A record that cannot be read now may be half written; a later try finds whose file it is.
  if (content.ok() && std::holds_alternative<ReadRecord>(content.value().record)) {
    if (auto problem = problem_with(content.value().record, name, path)) return failed(std::move(*problem));
  }
  return busy();
}

TryOutcome LockFiles::write(LockFile& file, const LockRequest& request) {
  auto content = read_content(file.fd.get(), file.path, kind_);
  if (!content.ok()) return failed(content.failure());
  if (auto problem = problem_with(content.value().record, file.name, file.path)) return failed(std::move(*problem));
  const auto* stored = std::get_if<ReadRecord>(&content.value().record);
  std::uint32_t slot = 0;
  if (several()) {
    if (auto answer = take_permit(file, request, stored, slot)) return std::move(*answer);
  }
  const auto wall = client_.host.executor().clock().wall_now();
  const auto token = next_token(stored != nullptr ? stored->record.token : 0, wall);
  if (!token) {
    return failed(
        {errc::protocol, file.path + ": its fencing token is the largest possible; remove the file to start again"});
  }
  const LockRecord record{.token = *token,
                          .owner = request.owner,
                          .holder = request.holder,
                          .pid = client_.pid,
                          .since = microseconds(wall),
                          .permits = request.permits};
  BesideRecord beside;
  if (several()) beside = {slot_byte(slot).begin, format_block(record, file.name, kind_)};
  if (kind_ == LockKind::election) beside = {record_end, format_value(request.owner, request.value)};
  if (auto problem = write_record(file.fd.get(), file.path, content.value(), record, file.name, kind_, beside)) {
    return failed(std::move(*problem));
  }
  if (several()) {
    drop_lock(file.fd.get(), entry_byte);
    if (std::exchange(file.gate, false)) drop_lock(file.fd.get(), gate_byte);
    file.permits_shared = false;  // the descriptor, and its share in the number, go with the lease
    file.permits = request.permits;
  }
  return granted(request, FencingToken(*token));
}

std::optional<TryOutcome> LockFiles::peek(const std::string& entry, const LockRequest& request) {
  const util::UniqueFd opened = directory_.open_unchecked(entry);
  if (!opened) return std::nullopt;  // attempt() finds and reports the same
  const int fd = opened.get();
  const std::string path = directory_.path_of(entry);
  auto lock = [&]() -> Result<LockState> {
    if (!several()) return look_at_lock(fd, path);
    if (kind_ == LockKind::read_write) {
      if (request.mode == Mode::shared) return look_at_lock(fd, path, LockType::read, whole_and_gate);
      return look_at_lock(fd, path, LockType::write, whole_byte);
    }
    const auto content = parse_record(read_text(fd, 0, record_block), kind_);
    const auto* const read = std::get_if<ReadRecord>(&content);
    if (read == nullptr || read->record.permits != request.permits) return LockState::free;
    return look_for_slot(fd, path, request.permits);
  }();
  if (!lock.ok() || lock.value() == LockState::free) return std::nullopt;
  auto identity = directory_.identify(fd, entry);
  auto found = find_file(path);
  if (!identity.ok() || !found.ok() || found.value() != identity.value()) return std::nullopt;
  return busy_unless_clash(fd, path, request.name);
}

void LockFiles::close(LockFile& file) noexcept {
  if (!file.fd) return;
  // In this order: the close wakes waiters, and the kernel reports it before it removes a lock.
  drop_lock(file.fd.get());
  file.fd.reset();
  file.gate = false;
  file.permits_shared = false;
}

Result<LockState> LockFiles::enter(LockFile& file, const LockRequest& request, bool close_gate, Attempt& attempt) {
  if (!several()) return take_lock(file.fd.get(), file.path);
  if (kind_ == LockKind::read_write && request.mode == Mode::exclusive) return enter_to_write(file, close_gate);
  return enter_beside_others(file, request, attempt);
}

// A waiting writer that finds readers closes the gate, so that no further readers enter. Behind a different writer the
// gate stays open: else readers would never get the lock.
Result<LockState> LockFiles::enter_to_write(LockFile& file, bool close_gate) {
  const int fd = file.fd.get();
  auto lock = take_lock(fd, file.path, LockType::write, whole_byte);
  if (!lock.ok() || lock.value() == LockState::free) return lock;
  if (!close_gate || file.gate) return LockState::busy;
  auto found = find_lock(fd, file.path, LockType::write, whole_byte);
  if (!found.ok()) return found.failure();
  if (!found.value() || found.value()->type == LockType::write) return LockState::busy;
  auto gate = take_lock(fd, file.path, LockType::write, gate_byte);
  if (!gate.ok()) return gate;
  file.gate = gate.value() == LockState::free;
  return LockState::busy;
}

Result<LockState> LockFiles::enter_beside_others(LockFile& file, const LockRequest& request, Attempt& attempt) {
  const int fd = file.fd.get();
  if (kind_ == LockKind::read_write) {
    auto seen = look_at_lock(fd, file.path, LockType::read, whole_and_gate);
    if (!seen.ok() || seen.value() == LockState::busy) return seen;
  } else if (file.permits_shared) {
    // Waiters try often. They take the entry byte only if a permit is free.
    auto seen = look_for_slot(fd, file.path, request.permits);
    if (!seen.ok() || seen.value() == LockState::busy) {
      file.full_at = client_.now();
      return seen;
    }
  }
  auto entry = begin_entry(fd, file.path);
  if (!entry.ok()) return entry;
  if (entry.value() == LockState::busy) {
    attempt.retry_soon = true;
    return entry;
  }
  auto lock = take_lock(fd, file.path, LockType::read, whole_byte);
  if (!lock.ok() || lock.value() == LockState::busy) drop_lock(fd, entry_byte);
  return lock;
}

std::optional<TryOutcome> LockFiles::take_permit(LockFile& file, const LockRequest& request, const ReadRecord* stored,
                                                 std::uint32_t& slot) {
  const int fd = file.fd.get();
  if (kind_ == LockKind::semaphore && stored != nullptr && stored->record.permits != request.permits) {
    // If no other owner shares the byte, this one may change the number. The entry byte keeps others out meanwhile.
    auto alone = take_lock(fd, file.path, LockType::write, whole_byte);
    if (!alone.ok()) return failed(alone.failure());
    if (alone.value() == LockState::busy) return failed(other_permits(request, stored->record.permits));
    auto shared = take_lock(fd, file.path, LockType::read, whole_byte);
    if (!shared.ok()) return failed(shared.failure());
  }
  const std::uint32_t slots = kind_ == LockKind::semaphore ? request.permits : reader_slots;
  auto taken = take_slot(fd, file.path, slots, [this] { return client_.host.executor().random(); });
  if (!taken.ok()) return failed(taken.failure());
  if (taken.value()) {
    slot = *taken.value();
    return std::nullopt;
  }
  if (kind_ == LockKind::semaphore) return busy();
  return failed({errc::unavailable, file.path + " has the maximum number of readers"});
}

void LockFiles::leave(LockFile& file, const LockRequest& request, TryOutcome::Status status) noexcept {
  const int fd = file.fd.get();
  if (!several()) return drop_lock(fd);
  drop_lock(fd, entry_and_slots);
  if (kind_ == LockKind::semaphore && request.wait && status == TryOutcome::Status::busy) {
    file.permits_shared = true;
    file.permits = request.permits;
  }
  if (!file.permits_shared) drop_lock(fd, whole_byte);
}

Result<LockState> LockFiles::check_for_waiters(const LockFile& file) const {
  const int fd = file.fd.get();
  if (!several()) return look_at_lock(fd, file.path);
  if (kind_ == LockKind::semaphore) {
    return file.permits == 0 ? LockState::free : look_for_slot(fd, file.path, file.permits);
  }
  auto whole = find_lock(fd, file.path, LockType::write, whole_byte);
  if (!whole.ok()) return whole.failure();
  if (!whole.value()) return LockState::free;
  // Readers hold it. If the gate is open, a waiting reader can enter, and a waiting writer can close the gate.
  if (whole.value()->type == LockType::write || file.gate) return LockState::busy;
  return look_at_lock(fd, file.path, LockType::write, gate_byte);
}

}  // namespace dlock::file
