// Removes nodes of this client: those of released locks, and those that a cancelled acquire left or may still create.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include <dlock/spi/backend.hpp>
#include <dlock/spi/cleanup.hpp>
#include <dlock/spi/executor.hpp>
#include <dlock/token.hpp>

#include "backends/zookeeper/nodes/requests.hpp"

namespace dlock::zookeeper {

// A node that this client created, or tried to.
struct OwnNode {
  std::string lock_path;
  std::string path = {};     // empty: not known
  std::string guid = {};     // in the node's name
  std::uint64_t epoch = 0;   // of the session it belongs to
  std::int64_t created = 0;  // czxid; 0: not known
  OwnerId owner = {};        // in the node's data, if other clients use the same path (strategy=ephemeral)

  [[nodiscard]] bool shares_path() const noexcept { return owner != OwnerId(); }
};

// The data of a node whose path other clients use: the owner is at the end of the first line, so that clients unaware
// of it still read an election's value.
[[nodiscard]] std::string data_of(std::string_view holder, const OwnerId& owner);
[[nodiscard]] bool is_of(std::string_view data, const OwnerId& owner);
// This owner made the node in this session.
[[nodiscard]] inline bool is_of(const Handle::Node& node, const OwnerId& owner, const Session& session) {
  return node.stat.owner == session.id() && is_of(node.data, owner);
}
// Without the owner, if there is one.
[[nodiscard]] std::string holder_of(std::string_view data);

// Cleanup retries failures; this finds, compares and removes the node while the session is usable. In tasks only.
class Removals {
 public:
  using Id = OwnerId;  // to Cleanup, each node has an owner of its own

  // warn: called once if the server forbids a removal.
  Removals(Executor& executor, Requests& requests, std::chrono::nanoseconds response_timeout,
           std::function<void(Failure)> warn);
  ~Removals();

  void remove(OwnNode node) { (void)add(std::move(node), false, nullptr); }
  // Answers within the response timeout: released if the node was there until now, not_owner if it was not.
  void remove(OwnNode node, Backend::ReleaseHandler done) { (void)add(std::move(node), false, std::move(done)); }

  // A request to create the node is in flight: created() gets its answer.
  [[nodiscard]] Id await(OwnNode node) { return add(std::move(node), true, nullptr); }
  void created(const Id& id, const Outcome& outcome, const std::string& path);

  // The session is usable, perhaps fresh; or it is lost, and its requests may never be answered.
  void session_ready(bool fresh);
  void session_lost();

  // Whether the end of the current session would remove all that is left.
  [[nodiscard]] bool only_of_this_session() const;
  // Calls done once everything is confirmed.
  void finish(std::function<void()> done) { cleanup_.finish(std::move(done)); }
  [[nodiscard]] std::size_t size() const noexcept { return entries_.size(); }

 private:
  struct Entry {
    Entry(Executor& executor, OwnNode own, bool awaits, Backend::ReleaseHandler handler)
        : node(std::move(own)), awaiting(awaits), done(std::move(handler)), deadline(executor) {}
    OwnNode node;
    bool awaiting;  // the answer of the create
    Backend::ReleaseHandler done;
    Cleanup::Answer answer = nullptr;  // while Cleanup waits for it
    std::uint64_t in_flight = 0;       // the request whose answer counts; 0: none
    bool unknown = false;              // a removal may have been carried out
    // If the node is of an earlier session: the server must have ended that session by then.
    TimePoint session_over_by = TimePoint::max();
    Timer deadline;
  };

  Id add(OwnNode node, bool awaiting, Backend::ReleaseHandler done);
  template <class F>
  [[nodiscard]] auto answered(const Id& id, F f);
  void attempt(const Id& id, Entry& entry);
  void look_for(const Id& id, Entry& entry);
  void looked(const Id& id, Entry& entry, const std::vector<std::string>& children);
  void compare(const Id& id, Entry& entry);
  void send_removal(const Id& id, Entry& entry);
  void failed(Entry& entry, const Outcome& outcome);
  void ended(const Id& id, bool removed);

  Executor& executor_;
  Requests& requests_;
  const std::chrono::nanoseconds response_timeout_;
  const std::function<void(Failure)> warn_;
  bool warned_ = false;
  std::uint64_t last_id_ = 0;
  std::uint64_t last_request_ = 0;
  std::unordered_map<Id, Entry> entries_;
  Cleanup cleanup_;
};

}  // namespace dlock::zookeeper
