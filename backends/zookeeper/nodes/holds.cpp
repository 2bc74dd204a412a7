#include "backends/zookeeper/nodes/holds.hpp"

#include <utility>

namespace dlock::zookeeper {

namespace {

using std::chrono::milliseconds;

// A watch of the own node costs a request, and an event at the release. Locks that are held for a moment do without.
constexpr milliseconds watch_after(200);
// If watches are used up, and after a failed query.
constexpr milliseconds poll_every(5000);
constexpr milliseconds retry_after(500);

}  // namespace

Holds::Holds(BackendHost& host, Requests& requests, Watches& watches, Removals& removals)
    : SessionHolds(host, "ZooKeeper"), requests_(requests), watches_(watches), removals_(removals) {}

Holds::~Holds() = default;

void Holds::add(const Grant& grant, OwnNode node, bool watched) {
  Hold& hold = SessionHolds::add(grant, std::move(node));
  if (watched) {
    watch(grant.owner, hold);
  } else {
    look_later(grant.owner, watch_after);
  }
}

// Every answered write confirms the locks.
void Holds::session_alive(TimePoint valid_until) {
  SessionHolds::session_alive(valid_until, requests_.session().granted_timeout() / 16);
}

void Holds::remove(const OwnerId& /*owner*/, OwnNode node) {
  removals_.remove(std::move(node));
}

void Holds::watch(const OwnerId& owner, Hold& hold) {
  hold.watch = watches_.watch(Watches::Kind::data, hold.own.path, [this, owner] {
    if (Hold* const held = find(owner)) look(owner, *held);
  });
}

void Holds::look(const OwnerId& owner, Hold& hold) {
  if (!requests_.ready()) return look_later(owner, retry_after);
  watch(owner, hold);
  requests_.get(hold.own.path, hold.watch.get(),
                [this, owner](const Outcome& outcome, const Handle::Node& node) { looked(owner, outcome, node.stat); });
}

void Holds::looked(const OwnerId& owner, const Outcome& outcome, const Stat& stat) {
  Hold* const hold = find(owner);
  if (hold == nullptr) return;
  const bool there = outcome.problem == Problem::none;
  if (!there && outcome.problem != Problem::no_node) {
    hold->watch.reset();
    return look_later(owner, retry_after);
  }
  if (there && stat.created == hold->own.created) {
    if (!hold->watch) look_later(owner, poll_every);
    return;
  }
  Failure why{errc::lost, "the node of " + called(*hold) + ", " + hold->own.path + ", was removed"};
  holds_.erase(owner);
  host_.lost(owner, std::move(why));
}

}  // namespace dlock::zookeeper
