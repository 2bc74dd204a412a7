// The lock service behind memory://, the part that would be a server elsewhere. Clients reach it through a Connection.
//
// Every operation says who asks (an owner id) and may be repeated without harm. The store has no clock and no thread:
// it reads the time on the asking client's clock, so clients that share a store should share a clock, and it notices
// the end of a lease when next asked about that name.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <dlock/clock.hpp>
#include <dlock/info.hpp>
#include <dlock/spi/backend.hpp>

#include "backends/memory/lock_table.hpp"
#include "backends/memory/session.hpp"
#include "util/mutex.hpp"

namespace dlock::memory {

// Thread-safe.
class MemoryStore {
 public:
  using Answer = LockTable::Answer;

  MemoryStore();

  // The store that all clients of memory://name share, for as long as a client holds on to it. In a child made by
  // fork() it is another than in the parent.
  [[nodiscard]] static std::shared_ptr<MemoryStore> named(std::string_view name);

  // --- Sessions -----------------------------------------------------------------------------------------------------

  void attach(Session& session);
  // Forgets what the session waits for and watches. What it holds expires by itself.
  void detach(Session& session) noexcept;

  // --- What clients ask ---------------------------------------------------------------------------------------------

  // The owner of the lock is granted again: same token, a new lease. A waiting writer that does not get the lock leaves
  // a mark for so long, which keeps readers out.
  Answer try_acquire(const LockRequest& request, std::chrono::nanoseconds mark, Session& session, const Clock& clock) {
    return table(request.kind, request.name).try_acquire(request, mark, session, clock);
  }
  // As try_acquire(), but waits in line if another owner holds the lock.
  Answer enqueue(const LockRequest& request, Session& session, const Clock& clock) {
    return table(request.kind, request.name).enqueue(request, session, clock);
  }
  // A new lease from now, if the owner's current one is not over. Answers whether that was so.
  bool renew(const Grant& grant, const Clock& clock) {
    return table(grant.kind, grant.name).renew(grant.name, grant.owner, grant.lease, clock);
  }
  // Afterwards this owner neither holds the lock nor waits for it. Answers whether it held it.
  bool release(LockKind kind, const std::string& name, const OwnerId& owner, const Clock& clock) {
    return table(kind, name).release(name, owner, clock);
  }

  [[nodiscard]] LockInfo inspect(LockKind kind, const std::string& name, const Clock& clock) {
    return table(kind, name).inspect(name, clock);
  }
  [[nodiscard]] std::vector<LockInfo> list(LockKind kind, const Clock& clock);  // sorted by name
  bool break_lock(LockKind kind, const std::string& name, const Clock& clock) {
    return table(kind, name).break_lock(name, clock);
  }
  [[nodiscard]] std::vector<std::string> forget(const Forgetting& what, const Clock& clock);

  // Session::freed(the number) is called whenever the lock becomes free by release or break, and when an election has a
  // new leader; the end of a lease goes unnoticed until the next request.
  [[nodiscard]] std::uint64_t watch(LockKind kind, const std::string& name, Session& session);
  void unwatch(LockKind kind, const std::string& name, std::uint64_t watch) { table(kind, name).unwatch(name, watch); }

  // --- For tests ----------------------------------------------------------------------------------------------------

  // As if the process of these clients died and the store knew at once: all that they hold, wait for and
  // watch is gone.
  void kill_sessions(const std::string& holder, const Clock& clock);
  // How many owners hold this lock or wait for it.
  [[nodiscard]] std::size_t residue(const std::string& name, const Clock& clock, LockKind kind = LockKind::lock) {
    return table(kind, name).residue(name, clock);
  }
  // How many names are remembered.
  [[nodiscard]] std::size_t size() const;

 private:
  // So many for each kind, so that threads with locks of different names seldom wait for each other.
  static constexpr std::size_t tables = 16;
  [[nodiscard]] LockTable& table(LockKind kind, std::string_view name) noexcept {
    return tables_[static_cast<std::size_t>(kind) * tables + std::hash<std::string_view>()(name) % tables];
  }
  template <class F>
  void for_each_table_of(LockKind kind, F f) {
    for (std::size_t i = 0; i < tables; ++i) f(tables_[static_cast<std::size_t>(kind) * tables + i]);
  }

  std::deque<LockTable> tables_;
  std::atomic<std::uint64_t> last_watch_{0};
  util::Mutex sessions_mutex_;  // before those of the tables
  std::vector<Session*> sessions_ DLOCK_GUARDED_BY(sessions_mutex_);
};

}  // namespace dlock::memory
