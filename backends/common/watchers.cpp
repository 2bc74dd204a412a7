#include "backends/common/watchers.hpp"

#include <utility>
#include <vector>

namespace dlock::common {

class Watchers::KeyWatch final : public Watch {
 public:
  KeyWatch(Watchers& watchers, std::string key, std::uint64_t id)
      : watchers_(watchers), key_(std::move(key)), id_(id) {}
  ~KeyWatch() override { watchers_.leave(key_, id_); }

 private:
  Watchers& watchers_;
  const std::string key_;
  const std::uint64_t id_;
};

std::unique_ptr<Watch> Watchers::watch(const std::string& key, std::function<void()> changed) {
  const std::uint64_t id = ++last_id_;
  keys_[key].watchers.emplace(id, std::move(changed));
  return std::make_unique<KeyWatch>(*this, key, id);
}

void Watchers::leave(const std::string& key, std::uint64_t id) {
  const auto found = keys_.find(key);
  auto& [watchers, first_was_told] = found->second;
  const auto watcher = watchers.find(id);
  const bool was_told = watcher == watchers.begin() && std::exchange(first_was_told, false);
  watchers.erase(watcher);
  if (watchers.empty()) {
    keys_.erase(found);
    return nobody_left_(key);
  }
  if (was_told) executor_.post(lifetime_.guard([this, key] { tell_first(key); }));
}

std::size_t Watchers::count(const std::string& key) const {
  const auto found = keys_.find(key);
  return found == keys_.end() ? 0 : found->second.watchers.size();
}

void Watchers::tell_all(const std::string& key) {
  const auto found = keys_.find(key);
  if (found == keys_.end()) return;
  std::vector<std::uint64_t> ids;
  ids.reserve(found->second.watchers.size());
  for (const auto& [id, changed] : found->second.watchers) ids.push_back(id);
  for (const std::uint64_t id : ids) {
    const auto again = keys_.find(key);
    if (again == keys_.end()) return;
    const auto watcher = again->second.watchers.find(id);
    if (watcher == again->second.watchers.end()) continue;
    const auto changed = watcher->second;
    changed();
  }
}

void Watchers::tell_all() {
  std::vector<std::string> keys;
  keys.reserve(keys_.size());
  for (const auto& [key, watched] : keys_) keys.push_back(key);
  for (const std::string& key : keys) tell_all(key);
}

void Watchers::tell_first(const std::string& key) {
  const auto found = keys_.find(key);
  if (found == keys_.end()) return;
  found->second.first_was_told = true;
  const auto changed = found->second.watchers.begin()->second;
  changed();
}

void Watchers::taken(const std::string& key) {
  if (const auto found = keys_.find(key); found != keys_.end()) found->second.first_was_told = false;
}

void Watchers::tell_any() {
  if (keys_.empty()) return;
  const auto changed = keys_.begin()->second.watchers.begin()->second;
  changed();
}

}  // namespace dlock::common
