#include "backends/zookeeper/nodes/removals.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include "backends/common/for_each_still_in.hpp"
#include "backends/zookeeper/nodes/node_name.hpp"

namespace dlock::zookeeper {

namespace {

constexpr std::chrono::nanoseconds look_again = std::chrono::seconds(1);

constexpr std::size_t owner_line = 1 + 32;  // a line feed, and hex digits

}  // namespace

std::string data_of(std::string_view holder, const OwnerId& owner) {
  return std::string(holder) + '\n' + owner.to_string();
}

bool is_of(std::string_view data, const OwnerId& owner) {
  return data.ends_with('\n' + owner.to_string());
}

std::string_view holder_of(std::string_view data) {
  const bool has_owner = data.size() >= owner_line && data[data.size() - owner_line] == '\n' &&
                         OwnerId::parse(data.substr(data.size() - owner_line + 1));
  return has_owner ? data.substr(0, data.size() - owner_line) : data;
}

struct Removals::Entry {
  Entry(Executor& executor, OwnNode own) : node(std::move(own)), timer(executor), deadline(executor) {}

  OwnNode node;
  Handler done = nullptr;
  bool awaiting = false;   // the answer of the create
  bool under_way = false;  // a request of ours
  bool unknown = false;    // a removal may have been carried out
  bool seen_absent = false;
  // Of an earlier session: when the server must have ended that.
  TimePoint moot = TimePoint::max();
  Backoff backoff{std::chrono::seconds(2)};
  Timer timer;
  Timer deadline;
};

Removals::Removals(Executor& executor, Requests& requests, std::chrono::nanoseconds response_timeout,
                   std::function<void(Failure)> warn)
    : executor_(executor), requests_(requests), response_timeout_(response_timeout), warn_(std::move(warn)) {}

Removals::~Removals() = default;

Removals::Id Removals::add(OwnNode node) {
  const Id id = ++next_id_;
  entries_.emplace(id, std::make_unique<Entry>(executor_, std::move(node)));
  attempt(id);
  return id;
}

void Removals::remove(OwnNode node, Handler done) {
  const Id id = add(std::move(node));
  const auto found = entries_.find(id);
  if (found == entries_.end()) return done(End::gone, {});
  found->second->done = std::move(done);
  found->second->deadline.arm(saturating_add(executor_.now(), response_timeout_), [this, id] {
    Entry& entry = *entries_.at(id);
    const auto report = std::exchange(entry.done, nullptr);
    // Not sent, or sent and not answered.
    const bool sent = entry.under_way || entry.unknown;
    report(End::unconfirmed, {sent ? errc::ambiguous : errc::unavailable,
                              "ZooKeeper did not confirm in time that " + entry.node.path + " is removed"});
  });
}

Removals::Id Removals::await(OwnNode node) {
  const Id id = ++next_id_;
  const auto added = entries_.emplace(id, std::make_unique<Entry>(executor_, std::move(node))).first;
  added->second->awaiting = true;
  return id;
}

void Removals::created(Id id, const Outcome& outcome, const std::string& path) {
  const auto found = entries_.find(id);
  if (found == entries_.end() || !std::exchange(found->second->awaiting, false)) return;
  switch (outcome.problem) {
    case Problem::none:
      found->second->node.path = path;
      return attempt(id);
    case Problem::unknown_outcome:
    case Problem::session_over:
      return attempt(id);
    default:
      return ended(id, End::gone);
  }
}

Removals::Entry* Removals::find(Id id, std::uint64_t round) {
  const auto found = entries_.find(id);
  if (found == entries_.end() || round != round_) return nullptr;
  found->second->under_way = false;
  return found->second.get();
}

// --- Attempts --------------------------------------------------------------------------------------------------------

void Removals::attempt(Id id) {
  Entry& entry = *entries_.at(id);
  if (entry.awaiting || entry.under_way || !requests_.ready()) return;
  if (entry.node.shares_path() && entry.node.epoch != requests_.session().epoch()) {
    // Removing it now could hit a client that creates the same node right after the server has ended that session.
    return ended(id, End::gone);
  }
  entry.timer.disarm();
  entry.under_way = true;
  if (entry.node.shares_path()) {
    compare(id, entry);
  } else if (entry.node.path.empty()) {
    look_for(id, entry);
  } else {
    send_removal(id, entry);
  }
}

void Removals::look_for(Id id, const Entry& entry) {
  // The request may have gone through another server than the one that is asked now.
  requests_.children_latest(entry.node.lock_path, [this, id, round = round_](const Outcome& outcome,
                                                                             const std::vector<std::string>& children) {
    if (find(id, round) == nullptr) return;
    if (outcome.problem == Problem::none) return looked(id, children);
    if (outcome.problem == Problem::no_node) return looked(id, {});
    failed(id, outcome);
  });
}

void Removals::looked(Id id, const std::vector<std::string>& children) {
  Entry& entry = *entries_.at(id);
  const auto found = std::find_if(children.begin(), children.end(), [&](const std::string& child) {
    return child.find(entry.node.guid) != std::string::npos;
  });
  if (found != children.end()) {
    entry.node.path = entry.node.lock_path + "/" + *found;
    return attempt(id);
  }
  // In a session that moved to another server, what was under way at the old one is refused. One that is not known to
  // be over may still get a late request carried out.
  if (entry.node.epoch == requests_.session().epoch() || executor_.now() >= entry.moot) return ended(id, End::gone);
  entry.seen_absent = true;
  later(id, look_again);
  report_if_finished();
}

void Removals::compare(Id id, const Entry& entry) {
  const auto answered = [this, id, round = round_](const Outcome& outcome, const Handle::Node& node) {
    Entry* const found = find(id, round);
    if (found == nullptr) return;
    if (outcome.problem != Problem::none && outcome.problem != Problem::no_node) return failed(id, outcome);
    // Once its number is known, that decides: other programs may write over the data.
    const bool ours = found->node.created != 0
                          ? node.stat.created == found->node.created
                          : node.stat.owner == requests_.session().id() && is_of(node.data, found->node.owner);
    if (outcome.problem == Problem::no_node || !ours) return removal_answered(id, {.problem = Problem::no_node});
    found->node.created = node.stat.created;  // known from now on
    if (!requests_.ready()) return;           // session_ready() begins again
    found->under_way = true;
    send_removal(id, *found);
  };
  // What was answered, every server that we come to knows. A create or a removal that was not may be known to another
  // one only: then a node that is seen here may be gone, and the next removal would hit its successor.
  if (entry.node.created != 0 && !entry.unknown) {
    requests_.get(entry.node.path, answered);
  } else {
    requests_.get_latest(entry.node.path, answered);
  }
}

void Removals::send_removal(Id id, const Entry& entry) {
  requests_.remove(entry.node.path, [this, id, round = round_](const Outcome& outcome) {
    if (find(id, round) != nullptr) removal_answered(id, outcome);
  });
}

void Removals::removal_answered(Id id, const Outcome& outcome) {
  Entry& entry = *entries_.at(id);
  switch (outcome.problem) {
    case Problem::none:
      return ended(id, End::removed);
    case Problem::no_node: {
      // While its session lives, most likely only we have removed it.
      const bool by_us = entry.unknown && entry.node.epoch == requests_.session().epoch();
      return ended(id, by_us ? End::removed : End::gone);
    }
    case Problem::unknown_outcome:
    case Problem::session_over:
      entry.unknown = true;
      break;
    default:
      break;
  }
  failed(id, outcome);
}

void Removals::failed(Id id, const Outcome& outcome) {
  Entry& entry = *entries_.at(id);
  if ((outcome.problem == Problem::no_rights || outcome.problem == Problem::other) && !std::exchange(warned_, true)) {
    Failure why = outcome.failure;
    why.detail = "a node that is not needed any more cannot be removed before the session ends: " + why.detail;
    warn_(std::move(why));
  }
  // A connection that broke is waited for, but it may also have been the request alone.
  later(id, entry.backoff.next(executor_));
}

void Removals::later(Id id, std::chrono::nanoseconds pause) {
  entries_.at(id)->timer.arm(saturating_add(executor_.now(), pause), [this, id] { attempt(id); });
}

void Removals::ended(Id id, End end) {
  const auto entry = std::move(entries_.at(id));
  entries_.erase(id);
  entry->deadline.disarm();
  if (!entry->done) return report_if_finished();
  if (end == End::gone && entry->unknown) {
    entry->done(End::unconfirmed, {errc::ambiguous,
                                   "the answer to the release was lost, and the session has ended since; the lock is "
                                   "free"});
  } else {
    entry->done(end, {});
  }
  report_if_finished();
}

// --- The session -----------------------------------------------------------------------------------------------------

void Removals::session_ready(bool fresh) {
  if (fresh) {
    // The granted timeout of the new session stands for that of the old; twice, because servers round it up and begin
    // again when their leader changes.
    const TimePoint moot = saturating_add(executor_.now(), 2 * requests_.session().granted_timeout());
    for (const auto& [id, entry] : entries_) {
      if (entry->node.epoch != requests_.session().epoch()) entry->moot = std::min(entry->moot, moot);
    }
    session_lost();
  }
  common::for_each_still_in(entries_, [this](Id id, const auto& /*entry*/) { attempt(id); });
}

void Removals::session_lost() {
  ++round_;
  for (const auto& [id, entry] : entries_) {
    if (std::exchange(entry->under_way, false)) entry->unknown = true;
    entry->awaiting = false;
  }
}

bool Removals::only_of_this_session() const {
  return std::all_of(entries_.begin(), entries_.end(), [&](const auto& item) {
    return item.second->seen_absent || item.second->node.epoch == requests_.session().epoch();
  });
}

void Removals::finish(std::function<void()> done) {
  finished_ = std::move(done);
  report_if_finished();
}

void Removals::report_if_finished() {
  if (!finished_) return;
  const bool finished = std::all_of(entries_.begin(), entries_.end(),
                                    [](const auto& item) { return item.second->seen_absent && !item.second->done; });
  if (!finished) return;
  const auto report = std::exchange(finished_, nullptr);
  report();
}

}  // namespace dlock::zookeeper
