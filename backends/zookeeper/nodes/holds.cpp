#include "backends/zookeeper/nodes/holds.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include "util/names.hpp"

namespace dlock::zookeeper {

namespace {

using std::chrono::milliseconds;

// A watch of our own node costs a request, and an event at the release; a lock that is held for a moment needs none.
constexpr milliseconds watch_after(200);
// Where watches are used up, and after a look that failed.
constexpr milliseconds poll_every(5000);
constexpr milliseconds retry_after(500);

}  // namespace

struct Holds::Hold {
  std::string name;
  Space space;
  OwnNode node;
  TimePoint valid_until;
  std::unique_ptr<Watches::Interest> watch = nullptr;
};

std::string Holds::called(const Hold& hold) {
  return std::string(to_string(hold.space)) + " " + util::quoted(hold.name);
}

Holds::Holds(BackendHost& host, Requests& requests, Watches& watches, Tombstones& tombstones)
    : host_(host), requests_(requests), watches_(watches), tombstones_(tombstones), timer_(host.executor()) {}

Holds::~Holds() = default;

Holds::Hold* Holds::find(const OwnerId& owner) const {
  const auto found = holds_.find(owner);
  return found == holds_.end() ? nullptr : found->second.get();
}

void Holds::add(const Grant& grant, OwnNode node, bool watched) {
  auto hold = std::make_unique<Hold>(Hold{grant.name, grant.space, std::move(node), grant.valid_until});
  Hold& added = *holds_.insert_or_assign(grant.owner, std::move(hold)).first->second;
  if (watched) {
    watch(grant.owner, added);
  } else {
    look_later(grant.owner, watch_after);
  }
}

std::optional<OwnNode> Holds::take(const OwnerId& owner) {
  const auto found = holds_.find(owner);
  if (found == holds_.end()) return std::nullopt;
  OwnNode node = std::move(found->second->node);
  holds_.erase(found);
  return node;
}

bool Holds::contains(std::string_view path, std::int64_t created) const {
  return std::any_of(holds_.begin(), holds_.end(), [&](const auto& item) {
    return item.second->node.created == created && item.second->node.path == path;
  });
}

// --- The session -----------------------------------------------------------------------------------------------------

void Holds::session_alive(TimePoint valid_until) {
  // Not at every answer: there may be thousands of locks.
  const auto step = requests_.session().granted_timeout() / 16;
  if (told_ != TimePoint::min() && valid_until < saturating_add(told_, step)) return;
  told_ = valid_until;
  const TimePoint now = host_.executor().now();
  std::vector<OwnerId> owners;  // the host may release one while it is told
  owners.reserve(holds_.size());
  for (const auto& [owner, hold] : holds_) owners.push_back(owner);
  for (const OwnerId& owner : owners) {
    Hold* const hold = find(owner);
    if (hold == nullptr) continue;
    if (!may_be_over(hold->valid_until, now)) {
      hold->valid_until = std::max(hold->valid_until, valid_until);
      host_.extended(owner, hold->valid_until);
      continue;
    }
    // Its holder may have been told already that it is over; the node must not stay with nobody to release it.
    OwnNode node = std::move(hold->node);
    lose(owner, {errc::lost, "ZooKeeper was not heard of before the lease of " + called(*hold) + " ran out"});
    tombstones_.remove(std::move(node));
  }
}

void Holds::session_lost(const Failure& why) {
  told_ = TimePoint::min();
  due_.clear();
  timer_.disarm();
  auto holds = std::exchange(holds_, {});
  for (auto& [owner, hold] : holds) {
    tombstones_.remove(std::move(hold->node));
    host_.lost(owner, {errc::lost, "the session that held " + called(*hold) + " is lost: " + why.detail});
  }
}

// --- Our own nodes ---------------------------------------------------------------------------------------------------

void Holds::watch(const OwnerId& owner, Hold& hold) {
  hold.watch = watches_.watch(Watches::Kind::data, hold.node.path, [this, owner] { look(owner); });
}

void Holds::look_later(const OwnerId& owner, std::chrono::nanoseconds pause) {
  const Due due{saturating_add(host_.executor().now(), pause), owner};
  const auto place = std::upper_bound(due_.begin(), due_.end(), due,
                                      [](const Due& one, const Due& other) { return one.at < other.at; });
  due_.insert(place, due);
  if (!timer_.armed() || due_.front().owner == owner) timer_.arm(due_.front().at, [this] { look_at_due(); });
}

void Holds::look_at_due() {
  const TimePoint now = host_.executor().now();
  while (!due_.empty() && due_.front().at <= now) {
    const OwnerId owner = due_.front().owner;
    due_.pop_front();
    look(owner);
  }
  // Most of those that are due later are released by then.
  while (!due_.empty() && find(due_.front().owner) == nullptr) due_.pop_front();
  if (!due_.empty()) timer_.arm(due_.front().at, [this] { look_at_due(); });
}

void Holds::look(const OwnerId& owner) {
  Hold* const hold = find(owner);
  if (hold == nullptr) return;
  if (!requests_.ready()) return look_later(owner, retry_after);
  watch(owner, *hold);
  requests_.get(hold->node.path, hold->watch.get(),
                [this, owner](const Outcome& outcome, const Handle::Node& node) { looked(owner, outcome, node.stat); });
}

void Holds::looked(const OwnerId& owner, const Outcome& outcome, const Stat& stat) {
  Hold* const hold = find(owner);
  if (hold == nullptr) return;
  switch (outcome.problem) {
    case Problem::none:
      if (stat.created == hold->node.created) {
        if (!hold->watch) look_later(owner, poll_every);
        return;
      }
      break;
    case Problem::no_node:
      break;
    default:
      hold->watch.reset();
      return look_later(owner, retry_after);
  }
  lose(owner, {errc::lost, "somebody removed the node " + hold->node.path + " of " + called(*hold)});
}

void Holds::lose(const OwnerId& owner, Failure why) {
  holds_.erase(owner);
  host_.lost(owner, std::move(why));
}

}  // namespace dlock::zookeeper
