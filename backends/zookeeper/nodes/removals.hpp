// Nodes of ours that must go: what was released, and what those who gave up left behind or may still come to leave.
// Each is removed as soon as a server can be reached, again and again until that is certain.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>

#include <dlock/spi/backoff.hpp>
#include <dlock/spi/executor.hpp>
#include <dlock/token.hpp>

#include "backends/zookeeper/nodes/requests.hpp"

namespace dlock::zookeeper {

// A node that this client made, or tried to.
struct OwnNode {
  std::string lock_path;
  std::string path = {};     // empty: not known
  std::string guid = {};     // in the node's name
  std::uint64_t epoch = 0;   // of the session it belongs to
  std::int64_t created = 0;  // czxid; 0: not known
  OwnerId owner = {};        // in the node's data, if other clients use the same path (strategy=ephemeral)

  [[nodiscard]] bool shares_path() const noexcept { return owner != OwnerId(); }
};

// The data of a node whose path other clients use: the holder, then a line with the owner.
[[nodiscard]] std::string data_of(std::string_view holder, const OwnerId& owner);
[[nodiscard]] bool is_of(std::string_view data, const OwnerId& owner);
// Without the line of the owner, if there is one.
[[nodiscard]] std::string_view holder_of(std::string_view data);

// In tasks only.
class Removals {
 public:
  enum class End {
    removed,      // it was there until now
    gone,         // it was not there any more
    unconfirmed,  // no answer in time, and goes on in the background; or the session ended before an answer came
  };
  using Handler = std::function<void(End, const Failure& why)>;
  using Id = std::uint64_t;

  // warn: told once if the server forbids it.
  Removals(Executor& executor, Requests& requests, std::chrono::nanoseconds response_timeout,
           std::function<void(Failure)> warn);
  ~Removals();

  void remove(OwnNode node) { (void)add(std::move(node)); }
  // Answers within the response timeout.
  void remove(OwnNode node, Handler done);

  // A request to create the node is under way: its answer is told by created().
  [[nodiscard]] Id await(OwnNode node);
  void created(Id id, const Outcome& outcome, const std::string& path);

  // The session stands (again), or a new one does. Or it is lost, and what is under way may never be answered.
  void session_ready(bool fresh);
  void session_lost();

  // Nothing is left that the end of the current session would not remove.
  [[nodiscard]] bool only_of_this_session() const;
  // Calls done once nothing is left to be confirmed.
  void finish(std::function<void()> done);
  [[nodiscard]] std::size_t size() const noexcept { return entries_.size(); }

 private:
  struct Entry;

  Id add(OwnNode node);
  void attempt(Id id);
  void look_for(Id id, const Entry& entry);
  void compare(Id id, const Entry& entry);
  void looked(Id id, const std::vector<std::string>& children);
  void send_removal(Id id, const Entry& entry);
  void removal_answered(Id id, const Outcome& outcome);
  void failed(Id id, const Outcome& outcome);
  void later(Id id, std::chrono::nanoseconds pause);
  void ended(Id id, End end);
  [[nodiscard]] Entry* find(Id id, std::uint64_t round);
  void report_if_finished();

  Executor& executor_;
  Requests& requests_;
  const std::chrono::nanoseconds response_timeout_;
  const std::function<void(Failure)> warn_;
  std::unordered_map<Id, std::unique_ptr<Entry>> entries_;
  Id next_id_ = 0;
  std::uint64_t round_ = 0;  // answers of an earlier one are no answers
  bool warned_ = false;
  std::function<void()> finished_;
};

}  // namespace dlock::zookeeper
