#include "backends/memory/memory_store.hpp"

#include <algorithm>
#include <map>
#include <utility>

#include "util/per_process.hpp"

namespace dlock::memory {

MemoryStore::MemoryStore() {
  for (const LockKind kind : {LockKind::lock, LockKind::read_write, LockKind::semaphore, LockKind::election}) {
    for (std::size_t i = 0; i < tables; ++i) tables_.emplace_back(kind);
  }
}

void MemoryStore::attach(Session& session) {
  const util::MutexLock lock(sessions_mutex_);
  sessions_.push_back(&session);
}

void MemoryStore::detach(Session& session) noexcept {
  const util::MutexLock lock(sessions_mutex_);
  std::erase(sessions_, &session);
  for (LockTable& table : tables_) table.detach(session);
}

void MemoryStore::kill_sessions(const std::string& holder, const Clock& clock) {
  const util::MutexLock lock(sessions_mutex_);
  for (Session* session : sessions_) {
    if (session->holder() != holder) continue;
    session->killed();
    for (LockTable& table : tables_) table.kill(*session, clock);
  }
}

std::vector<LockInfo> MemoryStore::list(LockKind kind, const Clock& clock) {
  std::vector<LockInfo> all;
  for_each_table_of(kind, [&](LockTable& table) { table.list(all, clock); });
  std::sort(all.begin(), all.end(), [](const LockInfo& a, const LockInfo& b) { return a.name < b.name; });
  return all;
}

std::vector<std::string> MemoryStore::forget(const Forgetting& what, const Clock& clock) {
  std::vector<std::string> removed;
  for_each_table_of(what.kind, [&](LockTable& table) { table.forget(what, removed, clock); });
  return removed;
}

std::uint64_t MemoryStore::watch(LockKind kind, const std::string& name, Session& session) {
  const std::uint64_t watch = ++last_watch_;
  table(kind, name).watch(name, watch, session);
  return watch;
}

std::size_t MemoryStore::size() const {
  std::size_t names = 0;
  for (const LockTable& table : tables_) names += table.size();
  return names;
}

// --- Registry --------------------------------------------------------------------------------------------------------

namespace {

// The stores of a parent process stay there, with their holders and waiters.
struct Registry {
  util::Mutex mutex;
  std::map<std::string, std::weak_ptr<MemoryStore>, std::less<>> stores DLOCK_GUARDED_BY(mutex);
};
constinit util::PerProcess<Registry> registry;

}  // namespace

std::shared_ptr<MemoryStore> MemoryStore::named(std::string_view name) {
  Registry& all = registry.get();
  const util::MutexLock lock(all.mutex);
  std::erase_if(all.stores, [](const auto& entry) { return entry.second.expired(); });
  const auto found = all.stores.find(name);
  // Between the two steps the last user may have let go.
  if (auto store = found == all.stores.end() ? nullptr : found->second.lock()) return store;
  auto store = std::make_shared<MemoryStore>();
  all.stores.insert_or_assign(std::string(name), store);
  return store;
}

}  // namespace dlock::memory
