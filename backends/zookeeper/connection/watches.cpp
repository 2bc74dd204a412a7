#include "backends/zookeeper/connection/watches.hpp"

#include <utility>

namespace dlock::zookeeper {

namespace {

// Of a path in the packet that sets watches again.
constexpr std::size_t length_bytes = 4;
// What its keys begin with.
constexpr const char* presence_key = "p";

}  // namespace

struct Watches::Entry {
  std::unique_ptr<Session::Watch> watch;
  std::list<Interest*> interested;
  std::size_t bytes = 0;
  std::size_t asked = 0;  // requests that may set it
  bool set = false;
};

Watches::Watches(Executor& executor, Session& session, std::size_t chroot_bytes, std::size_t max_bytes)
    : executor_(executor), session_(session), overhead_(chroot_bytes + length_bytes), max_bytes_(max_bytes) {}

Watches::~Watches() {
  for (const auto& [key, entry] : entries_) {
    for (Interest* interest : entry->interested) interest->linked_ = false;
  }
}

std::unique_ptr<Watches::Interest> Watches::watch(Kind kind, const std::string& path, std::function<void()> changed) {
  const Key key = (kind == Kind::data ? "d" : kind == Kind::children ? "c" : presence_key) + path;
  auto found = entries_.find(key);
  if (found == entries_.end()) {
    const std::size_t bytes = path.size() + overhead_;
    if (bytes_ + bytes > max_bytes_) return nullptr;
    bytes_ += bytes;
    auto entry = std::make_shared<Entry>();
    entry->bytes = bytes;
    entry->watch = session_.watch(lifetime_.guard([this, key] { fire(key); }));
    found = entries_.emplace(key, std::move(entry)).first;
  }
  auto interest = std::make_unique<Interest>(*this, key, std::move(changed));
  Entry& entry = *found->second;
  interest->id_ = entry.watch->id();
  interest->place_ = entry.interested.insert(entry.interested.end(), interest.get());
  interest->linked_ = true;
  return interest;
}

void Watches::fire(Key key) {
  const auto found = entries_.find(key);
  if (found == entries_.end()) return;
  // Each as a task of its own, because what is called may end the interest of another.
  for (Interest* interest : found->second->interested) {
    interest->linked_ = false;
    executor_.post([changed = std::weak_ptr<const std::function<void()>>(interest->changed_)] {
      if (const auto call = changed.lock()) (*call)();
    });
  }
  erase(key);
}

void Watches::erase(const Key& key) {
  const auto found = entries_.find(key);
  bytes_ -= found->second->bytes;
  entries_.erase(found);
}

void Watches::erase_unless_needed(const Key& key, const Entry& entry) {
  if (entry.interested.empty() && !entry.set && entry.asked == 0) erase(key);
}

std::function<void(Problem)> Watches::asked(const Key& key) {
  const std::shared_ptr<Entry>& asked_for = entries_.at(key);
  ++asked_for->asked;
  return lifetime_.guard([this, key, weak = std::weak_ptr(asked_for)](Problem problem) {
    const auto entry = weak.lock();
    if (!entry) return;  // it has fired
    --entry->asked;
    const bool stands = key.starts_with(presence_key);
    if (problem == Problem::no_node && !stands) return fire(key);
    if (problem == Problem::none || problem == Problem::no_node) entry->set = true;
    erase_unless_needed(key, *entry);
  });
}

Watches::Interest::Interest(Watches& watches, Key key, std::function<void()> changed)
    : watches_(watches),
      key_(std::move(key)),
      changed_(std::make_shared<const std::function<void()>>(std::move(changed))) {}

Watches::Interest::~Interest() {
  if (!linked_) return;
  Entry& entry = *watches_.entries_.at(key_);
  entry.interested.erase(place_);
  watches_.erase_unless_needed(key_, entry);
}

}  // namespace dlock::zookeeper
