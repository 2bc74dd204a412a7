#include "backends/file/names.hpp"

#include <algorithm>

namespace dlock::file {

HeldLock* Name::find_lease(const OwnerId& owner) noexcept {
  const auto found = std::ranges::find(leases, owner, &HeldLock::owner);
  return found != leases.end() ? &*found : nullptr;
}

bool Name::full() const noexcept {
  if (leases.empty()) return false;
  if (file.kind == LockKind::semaphore) return leases.size() >= file.permits;
  return file.kind != LockKind::read_write || leases.front().mode == Mode::exclusive;
}

Name* Names::find(std::string_view entry) noexcept {
  const auto found = names_.find(entry);
  return found != names_.end() ? found->second.get() : nullptr;
}

Name& Names::obtain(const std::string& entry, const std::string& lock_name) {
  if (Name* const known = find(entry)) return *known;
  auto made = std::make_unique<Name>(files_.describe(entry, lock_name), executor_);
  return *names_.emplace(made->file.entry, std::move(made)).first->second;
}

std::vector<std::string> Names::entries() const {
  std::vector<std::string> all;
  all.reserve(names_.size());
  for (const auto& known : names_) all.emplace_back(known.first);
  return all;
}

void Names::settle(Name& name) {
  if (!name.waiters.empty()) return;
  if (name.leases.empty()) {
    names_.erase(names_.find(name.file.entry));
  } else if (files_.several()) {
    LockFiles::close(name.file);  // each lease has its own descriptor
  }
}

}  // namespace dlock::file
