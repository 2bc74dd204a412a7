// Where the kinds of locks differ: what has to be locked in a file to enter, and who fits in beside whom.
//
// A plain lock and an election lock the whole file. A writer locks byte 0 alone, a reader shares it; a permit is one of
// so many slots, and byte 0 is shared by all who use the same number of them. So the kernel takes back whatever a
// process had when it dies.
#include <limits>
#include <utility>

#include "backends/file/lock_space.hpp"

namespace dlock::file {

std::optional<TryOutcome> LockSpace::refused_here(const NameState& state, const LockRequest& request) const {
  const HeldLocks& leases = state.leases;
  if (kind_ == LockKind::semaphore) {
    if ((state.permits_shared || !leases.empty()) && state.permits != request.permits) {
      return failed(other_permits(request, state.permits));
    }
    // A waiter must have a share in the number of permits, which needs a try.
    if (closed(state) && (!request.wait || state.permits_shared)) return busy();
    if (full_a_moment_ago(state, request)) return busy();
    return std::nullopt;
  }
  if (closed(state)) return busy();
  if (request.mode == Mode::shared && state.gate) return busy();
  return std::nullopt;
}

// A look at each permit costs a system call, which thousands who wait must not all do.
bool LockSpace::full_a_moment_ago(const NameState& state, const LockRequest& request) const noexcept {
  return request.wait && state.permits_shared && state.subscription.active() && state.full_at != TimePoint::min() &&
         now() - state.full_at < trust_path;
}

bool LockSpace::closed(const NameState& state) const noexcept {
  switch (kind_) {
    case LockKind::lock:
    case LockKind::election:
      return !state.leases.empty();
    case LockKind::read_write:
      return !state.leases.empty() && state.leases.first().mode == Mode::exclusive;
    case LockKind::semaphore:
      return !state.leases.empty() && state.leases.size() >= state.permits;
  }
  return false;
}

Result<LockState> LockSpace::enter(NameState& state, const LockRequest& request) {
  if (!several()) return take_lock(state.fd.get(), state.path);
  if (kind_ == LockKind::read_write && request.mode == Mode::exclusive) return enter_to_write(state, request);
  return enter_beside_others(state, request);
}

// A waiting writer that finds readers keeps the gate: those inside leave, and no others come. Behind another writer
// there is no need to keep readers out; they would never get their turn.
Result<LockState> LockSpace::enter_to_write(NameState& state, const LockRequest& request) {
  const int fd = state.fd.get();
  auto lock = take_lock(fd, state.path, LockType::write, whole_byte);
  if (!lock.ok() || lock.value() == LockState::free) return lock;
  // With a watch, whose end opens the gate again.
  if (!request.wait || state.gate || !state.writer_waits()) return LockState::busy;
  auto found = find_lock(fd, state.path, LockType::write, whole_byte);
  if (!found.ok()) return found.failure();
  if (!found.value() || found.value()->type == LockType::write) return LockState::busy;
  auto gate = take_lock(fd, state.path, LockType::write, gate_byte);
  if (!gate.ok()) return gate;
  state.gate = gate.value() == LockState::free;
  return LockState::busy;
}

Result<LockState> LockSpace::enter_beside_others(NameState& state, const LockRequest& request) {
  const int fd = state.fd.get();
  if (kind_ == LockKind::read_write) {
    auto seen = look_at_lock(fd, state.path, LockType::read, whole_and_gate);
    if (!seen.ok() || seen.value() == LockState::busy) return seen;
  } else if (state.permits_shared) {
    // Those who wait come often, and leave the entry to those who find a permit.
    auto seen = look_for_slot(fd, state.path, request.permits);
    if (!seen.ok() || seen.value() == LockState::busy) {
      state.full_at = now();
      return seen;
    }
  }
  auto entry = begin_entry(fd, state.path);
  if (!entry.ok()) return entry;
  if (entry.value() == LockState::busy) {
    if (request.wait) look_again_soon(state);
    return entry;
  }
  auto lock = take_lock(fd, state.path, LockType::read, whole_byte);
  if (!lock.ok() || lock.value() == LockState::busy) drop_lock(fd, entry_byte);
  return lock;
}

std::optional<TryOutcome> LockSpace::enter_by_record(NameState& state, const LockRequest& request,
                                                     const ReadRecord* stored, std::uint32_t& slot) {
  const int fd = state.fd.get();
  if (kind_ == LockKind::semaphore && stored != nullptr && stored->record.permits != request.permits) {
    // An owner that is alone with the byte may change the number; no other enters meanwhile, as the entry byte is
    // taken.
    auto alone = take_lock(fd, state.path, LockType::write, whole_byte);
    if (!alone.ok()) return failed(alone.failure());
    if (alone.value() == LockState::busy) return failed(other_permits(request, stored->record.permits));
    auto shared = take_lock(fd, state.path, LockType::read, whole_byte);
    if (!shared.ok()) return failed(shared.failure());
  }
  const std::uint32_t slots = kind_ == LockKind::semaphore ? request.permits : reader_slots;
  auto taken = take_slot(fd, state.path, slots, [this] { return host().executor().random(); });
  if (!taken.ok()) return failed(taken.failure());
  if (taken.value()) {
    slot = *taken.value();
    return std::nullopt;
  }
  if (kind_ == LockKind::semaphore) return busy();
  return failed({errc::unavailable, state.path + " has the maximum number of readers"});
}

void LockSpace::leave(NameState& state, const LockRequest& request, TryOutcome::Status status) noexcept {
  const int fd = state.fd.get();
  if (!several()) return drop_lock(fd);
  drop_lock(fd, entry_and_slots);
  if (kind_ == LockKind::semaphore && request.wait && status == TryOutcome::Status::busy) {
    state.permits_shared = true;
    state.permits = request.permits;
  }
  if (!state.permits_shared) drop_lock(fd, whole_byte);
}

void LockSpace::settle_in(NameState& state, const LockRequest& request) noexcept {
  if (!several()) return;
  drop_lock(state.fd.get(), entry_byte);
  if (std::exchange(state.gate, false)) drop_lock(state.fd.get(), gate_byte);
  // The descriptor, and its share in the number, go with the lease.
  state.permits_shared = false;
  state.permits = request.permits;
}

Result<LockState> LockSpace::look_for(int fd, const std::string& path, const LockRequest& request) {
  if (!several()) return look_at_lock(fd, path);
  if (kind_ == LockKind::read_write) {
    if (request.mode == Mode::shared) return look_at_lock(fd, path, LockType::read, whole_and_gate);
    return look_at_lock(fd, path, LockType::write, whole_byte);
  }
  const auto content = parse_record(read_text(fd, 0, record_block), kind_);
  const auto* const read = std::get_if<ReadRecord>(&content);
  if (read == nullptr || read->record.permits != request.permits) return LockState::free;  // it takes a real try
  return look_for_slot(fd, path, request.permits);
}

Result<LockState> LockSpace::look_for_waiters(const NameState& state) {
  const int fd = state.fd.get();
  if (!several()) return look_at_lock(fd, state.path);
  if (kind_ == LockKind::semaphore) {
    return state.permits == 0 ? LockState::free : look_for_slot(fd, state.path, state.permits);
  }
  auto whole = find_lock(fd, state.path, LockType::write, whole_byte);
  if (!whole.ok()) return whole.failure();
  if (!whole.value()) return LockState::free;
  // Among readers, others may enter unless the gate is shut, and then a writer may want to shut it.
  if (whole.value()->type == LockType::write || state.gate) return LockState::busy;
  return look_at_lock(fd, state.path, LockType::write, gate_byte);
}

}  // namespace dlock::file
