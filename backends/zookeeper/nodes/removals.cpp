#include "backends/zookeeper/nodes/removals.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include "backends/common/for_each_still_in.hpp"
#include "backends/zookeeper/nodes/node_name.hpp"

namespace dlock::zookeeper {

namespace {

// A node lives as long as its session, so its removal is retried until it is certain.
constexpr std::chrono::hours endless{24 * 365};

constexpr std::size_t owner_part = 1 + 32;  // a space, and hex digits

// An election's value follows it in the data.
std::string_view first_line(std::string_view data) {
  return data.substr(0, data.find('\n'));
}

}  // namespace

std::string data_of(std::string_view holder, const OwnerId& owner) {
  std::string data(holder);
  data.insert(first_line(holder).size(), ' ' + owner.to_string());
  return data;
}

bool is_of(std::string_view data, const OwnerId& owner) {
  return first_line(data).ends_with(' ' + owner.to_string());
}

std::string holder_of(std::string_view data) {
  const std::string_view line = first_line(data);
  const bool has_owner = line.size() >= owner_part && line[line.size() - owner_part] == ' ' &&
                         OwnerId::parse(line.substr(line.size() - owner_part + 1));
  std::string holder(data);
  if (has_owner) holder.erase(line.size() - owner_part, owner_part);
  return holder;
}

Removals::Removals(Executor& executor, Requests& requests, std::chrono::nanoseconds response_timeout,
                   std::function<void(Failure)> warn)
    : executor_(executor),
      requests_(requests),
      response_timeout_(response_timeout),
      warn_(std::move(warn)),
      cleanup_(executor, response_timeout, endless,
               [this](const Cleanup::Claim& claim, Cleanup::Reason, TimePoint, Cleanup::Answer answer) {
                 Entry& entry = entries_.at(claim.owner);
                 entry.answer = std::move(answer);
                 attempt(claim.owner, entry);
               }) {}

Removals::~Removals() = default;

Removals::Id Removals::add(OwnNode node, bool awaiting, Backend::ReleaseHandler done) {
  const Id id(0, ++last_id_);
  Entry& entry = entries_.try_emplace(id, executor_, std::move(node), awaiting, std::move(done)).first->second;
  if (entry.done) {
    entry.deadline.arm(saturating_add(executor_.now(), response_timeout_), [this, id] {
      Entry& late = entries_.at(id);
      const bool sent = late.in_flight != 0 || late.unknown;
      const auto report = std::exchange(late.done, nullptr);
      report({.status = ReleaseOutcome::Status::failed,
              .failure = {sent ? errc::ambiguous : errc::unavailable,
                          "ZooKeeper did not confirm in time that " + late.node.path + " is removed"}});
    });
  }
  cleanup_.abandon({.name = entry.node.lock_path, .owner = id}, {}, false);
  return id;
}

void Removals::created(const Id& id, const Outcome& outcome, const std::string& path) {
  const auto found = entries_.find(id);
  if (found == entries_.end() || !std::exchange(found->second.awaiting, false)) return;
  switch (outcome.problem) {
    case Problem::none:
      if (std::string& known = found->second.node.path; known.empty()) {
        known = found->second.node.lock_path + "/" + std::string(last_component(path));
      }
      [[fallthrough]];
    case Problem::unknown_outcome:
    case Problem::session_over:
      return attempt(id, found->second);
    default:
      return ended(id, false);
  }
}

// --- Attempts --------------------------------------------------------------------------------------------------------

// Passes the answer of the request sent now to f, unless the session is lost before.
template <class F>
auto Removals::answered(const Id& id, F f) {
  const std::uint64_t request = entries_.at(id).in_flight = ++last_request_;
  return [this, id, request, f = std::move(f)](const Outcome& outcome, const auto&... answer) {
    const auto found = entries_.find(id);
    if (found == entries_.end() || found->second.in_flight != request) return;
    found->second.in_flight = 0;
    f(found->second, outcome, answer...);
  };
}

void Removals::attempt(const Id& id, Entry& entry) {
  if (!entry.answer || entry.awaiting || entry.in_flight != 0 || !requests_.ready()) return;
  if (!entry.node.shares_path()) return entry.node.path.empty() ? look_for(id, entry) : send_removal(id, entry);
  // Removing the node of an earlier session could hit a client that creates the same node right after the server has
  // ended that session.
  if (entry.node.epoch != requests_.session().epoch()) return ended(id, false);
  compare(id, entry);
}

void Removals::look_for(const Id& id, Entry& entry) {
  // The create may have gone through a different server than this query.
  requests_.children_latest(entry.node.lock_path, answered(id, [this, id](Entry& found, const Outcome& outcome,
                                                                          const std::vector<std::string>& children) {
                              if (outcome.problem == Problem::none) return looked(id, found, children);
                              if (outcome.problem == Problem::no_node) return looked(id, found, {});
                              failed(found, outcome);
                            }));
}

void Removals::looked(const Id& id, Entry& entry, const std::vector<std::string>& children) {
  const auto found = std::find_if(children.begin(), children.end(), [&](const std::string& child) {
    return child.find(entry.node.guid) != std::string::npos;
  });
  if (found != children.end()) {
    entry.node.path = entry.node.lock_path + "/" + *found;
    return attempt(id, entry);
  }
  // If a session moved to a different server, the new server refuses requests that were in flight at the old one. For a
  // session that may not have ended, a late request may still be carried out: Cleanup retries in a second.
  const bool over = entry.node.epoch == requests_.session().epoch() || executor_.now() >= entry.session_over_by;
  if (over) return ended(id, false);
  cleanup_.abandon({.name = entry.node.lock_path, .owner = id}, {}, true);
  std::exchange(entry.answer, nullptr)(false);
}

void Removals::compare(const Id& id, Entry& entry) {
  const auto compared = [this, id](Entry& found, const Outcome& outcome, const Handle::Node& node) {
    if (outcome.problem != Problem::none && outcome.problem != Problem::no_node) return failed(found, outcome);
    // A known czxid decides: other programs may overwrite the data.
    std::int64_t& created = found.node.created;
    const bool ours = created != 0 ? node.stat.created == created : is_of(node, found.node.owner, requests_.session());
    if (outcome.problem == Problem::no_node || !ours) return ended(id, false);
    created = node.stat.created;
    if (requests_.ready()) send_removal(id, found);  // otherwise session_ready() retries
  };
  // Every server that this client moves to knows what was answered. An unanswered create or removal may be known to one
  // server only: then a node seen here may be gone, and the next removal would hit its successor.
  if (entry.node.created != 0 && !entry.unknown) {
    requests_.get(entry.node.path, answered(id, compared));
  } else {
    requests_.get_latest(entry.node.path, answered(id, compared));
  }
}

void Removals::send_removal(const Id& id, Entry& entry) {
  requests_.remove(entry.node.path, answered(id, [this, id](Entry& found, const Outcome& outcome) {
                     if (outcome.problem == Problem::none) return ended(id, true);
                     if (outcome.problem == Problem::no_node) return ended(id, false);
                     found.unknown |=
                         outcome.problem == Problem::unknown_outcome || outcome.problem == Problem::session_over;
                     failed(found, outcome);
                   }));
}

void Removals::failed(Entry& entry, const Outcome& outcome) {
  if ((outcome.problem == Problem::no_rights || outcome.problem == Problem::other) && !std::exchange(warned_, true)) {
    Failure why = outcome.failure;
    why.detail = "a node that is not needed any more cannot be removed before the session ends: " + why.detail;
    warn_(std::move(why));
  }
  // Never ambiguous: no late request is carried out in a session that moved to a different server.
  std::exchange(entry.answer, nullptr)(Failure{errc::unavailable, outcome.failure.detail});
}

void Removals::ended(const Id& id, bool removed) {
  using Status = ReleaseOutcome::Status;
  Entry& entry = entries_.at(id);
  entry.deadline.disarm();
  // As long as its session lives, most likely only an earlier request of this client can have removed the node.
  removed |= entry.unknown && entry.node.epoch == requests_.session().epoch();
  if (const auto done = std::exchange(entry.done, nullptr)) {
    if (!removed && entry.unknown) {
      done({.status = Status::failed,
            .failure = {errc::ambiguous,
                        "the answer to the release was lost, and the session has ended since; the lock is free"}});
    } else {
      done({.status = removed ? Status::released : Status::not_owner});
    }
  }
  const auto answer = std::move(entry.answer);
  entries_.erase(id);
  answer(removed);
}

// --- The session -----------------------------------------------------------------------------------------------------

void Removals::session_ready(bool fresh) {
  if (fresh) {
    session_lost();
    // The old session's timeout is taken to be that of the new one; doubled, because servers round it up and begin anew
    // when their leader changes.
    const TimePoint over_by = saturating_add(executor_.now(), 2 * requests_.session().granted_timeout());
    for (auto& [id, entry] : entries_) {
      if (entry.node.epoch == requests_.session().epoch()) continue;
      entry.session_over_by = std::min(entry.session_over_by, over_by);
    }
  }
  cleanup_.retry_now();
  common::for_each_still_in(entries_, [this](const Id& id, Entry& entry) { attempt(id, entry); });
}

void Removals::session_lost() {
  for (auto& [id, entry] : entries_) {
    if (std::exchange(entry.in_flight, 0) != 0) entry.unknown = true;
    entry.awaiting = false;
  }
}

bool Removals::only_of_this_session() const {
  bool only = true;
  cleanup_.for_each_unconfirmed([&](const Cleanup::Claim& claim) {
    only = only && entries_.at(claim.owner).node.epoch == requests_.session().epoch();
  });
  return only;
}

}  // namespace dlock::zookeeper
