#include "backends/zookeeper/connection/watches.hpp"

#include <utility>

namespace dlock::zookeeper {

namespace {

// Of a path in the packet that sets watches again.
constexpr std::size_t length_bytes = 4;

}  // namespace

Watches::Watches(Executor& executor, Session& session, std::size_t chroot_bytes, std::size_t max_bytes)
    : executor_(executor), overhead_(chroot_bytes + length_bytes), max_bytes_(max_bytes) {
  session.on_watch(lifetime_.guard([this](Handle::WatchId id) {
    if (id == Session::all_watches) {
      while (!entries_.empty()) fire(std::shared_ptr(entries_.begin()->second));
    } else if (const auto found = entries_.find(id); found != entries_.end()) {
      fire(std::shared_ptr(found->second));
    }
  }));
}

Watches::~Watches() {
  for (const auto& [id, entry] : entries_) entry->over = true;
}

std::unique_ptr<Watches::Interest> Watches::watch(Kind kind, const std::string& path, std::function<void()> changed) {
  const std::string key = (kind == Kind::data ? "d" : kind == Kind::children ? "c" : "p") + path;
  auto found = ids_.find(key);
  if (found == ids_.end()) {
    const std::size_t bytes = path.size() + overhead_;
    if (bytes_ + bytes > max_bytes_) return nullptr;
    bytes_ += bytes;
    found = ids_.emplace(key, ++last_id_).first;
    entries_.emplace(last_id_, std::make_shared<Entry>(Entry{key, kind == Kind::presence, bytes, last_id_}));
  }
  return std::make_unique<Interest>(*this, entries_.at(found->second), std::move(changed));
}

void Watches::fire(const std::shared_ptr<Entry>& entry) {
  if (entry->over) return;
  // Each as a task of its own, because what is called may end the interest of another.
  for (Interest* interest : entry->interested) {
    executor_.post([changed = std::weak_ptr<const std::function<void()>>(interest->changed_)] {
      if (const auto call = changed.lock()) (*call)();
    });
  }
  erase(*entry);
}

void Watches::erase(Entry& entry) {
  entry.over = true;
  bytes_ -= entry.bytes;
  ids_.erase(entry.key);
  entries_.erase(entry.id);
}

void Watches::erase_unless_needed(Entry& entry) {
  if (entry.interested.empty() && !entry.set && entry.in_flight == 0) erase(entry);
}

std::function<void(Problem)> Watches::request_sent(const std::shared_ptr<Entry>& entry) {
  ++entry->in_flight;
  return lifetime_.guard([this, entry](Problem problem) {
    if (entry->over) return;
    --entry->in_flight;
    if (problem == Problem::no_node && !entry->of_presence) return fire(entry);
    if (problem == Problem::none || problem == Problem::no_node) entry->set = true;
    erase_unless_needed(*entry);
  });
}

Watches::Interest::Interest(Watches& watches, std::shared_ptr<Entry> entry, std::function<void()> changed)
    : watches_(watches),
      entry_(std::move(entry)),
      changed_(std::make_shared<const std::function<void()>>(std::move(changed))),
      place_(entry_->interested.insert(entry_->interested.end(), this)) {}

Watches::Interest::~Interest() {
  entry_->interested.erase(place_);
  if (!entry_->over) watches_.erase_unless_needed(*entry_);
}

}  // namespace dlock::zookeeper
