// Our place in a lock's queue: one node, from the request that makes it until it is certain that it is there, or gone.
//
//   state    | our node
//   ---------+---------------------------------------------------------------
//   none     | is not there
//   asked    | is being made; the answer is under way
//   unknown  | may be there, because the answer was lost: find() tells
//   there    | is
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <dlock/error.hpp>
#include <dlock/spi/lifetime.hpp>

#include "backends/zookeeper/nodes/node_name.hpp"
#include "backends/zookeeper/nodes/parents.hpp"
#include "backends/zookeeper/nodes/removals.hpp"
#include "backends/zookeeper/nodes/requests.hpp"

namespace dlock::zookeeper {

// In tasks only. Gives its place up when it goes.
class QueuePlace {
 public:
  struct Answer {
    enum class Kind {
      there,         // our node stands
      gone,          // nothing of ours is there
      parents_made,  // the nodes above were missing; now take() again
      later,         // not at once again: it is of an earlier session and being removed, or the connection is gone
      trouble,       // the same, and see `failure`
      refused,       // for good; see `failure`
    } kind;
    Failure failure = {};
  };
  using Handler = std::function<void(const Answer&)>;

  QueuePlace(Requests& requests, Parents& parents, Removals& tombstones, Layout layout, const Claim& claim,
             std::string lock_path);
  ~QueuePlace() { give_up(); }
  QueuePlace(const QueuePlace&) = delete;
  QueuePlace& operator=(const QueuePlace&) = delete;

  // These two while requests may be sent. Answered at most once, not inside the call, and not after give_up().
  //
  // random: what the node's name has that no other has. A list that is sent behind this is answered behind it, and
  // shows the node where it was made.
  void take(const OwnerId& random, const std::string& data, Handler done);
  void find(Handler done);

  // What there may be of it is removed, if need be later. Afterwards there is none.
  void give_up();
  // Another client has removed it.
  void removed() noexcept { state_ = State::none; }
  // It becomes a hold's, which looks after it from now on.
  [[nodiscard]] OwnNode hand_over();

  [[nodiscard]] bool unknown() const noexcept { return state_ == State::unknown; }
  [[nodiscard]] bool there() const noexcept { return state_ == State::there; }
  // While there: the node's name, and where it stands in the queue.
  [[nodiscard]] const std::string& node() const noexcept { return node_; }
  [[nodiscard]] const QueuePosition& position() const noexcept { return position_; }

 private:
  enum class State { none, asked, unknown, there };
  // Shared with the answer of the create, which may come after we have given up.
  struct Creation {
    std::optional<Removals::Id> tombstone;
  };

  void created(const Outcome& outcome, const Handle::Created& node, const Handler& done);
  void found(const std::vector<std::string>& children, const Handler& done);
  void place(const std::string& node, const Stat& stat, const Handler& done);
  void make_parents(const Handler& done);
  void look_above(const Failure& why, const Handler& done);
  [[nodiscard]] OwnNode own_node() const;
  [[nodiscard]] std::string path_of(const std::string& node) const { return lock_path_ + "/" + node; }
  // Calls f with an answer of the server's unless this is gone, or the place is given up.
  template <class F>
  [[nodiscard]] auto guarded(F f) {
    return lifetime_.guard([this, round = round_, f = std::move(f)](auto&&... args) {
      if (round == round_) f(args...);
    });
  }

  Requests& requests_;
  Parents& parents_;
  Removals& tombstones_;
  const Layout layout_;
  const Claim claim_;
  const std::string lock_path_;
  State state_ = State::none;
  std::uint64_t round_ = 0;  // ends with each giving up; answers to questions of an earlier one are of no interest
  std::string guid_;
  std::uint64_t epoch_ = 0;             // of the session that it belongs to, or would
  std::shared_ptr<Creation> creation_;  // while asked
  std::string node_;
  QueuePosition position_;
  int parents_made_ = 0;
  Lifetime lifetime_;
};

}  // namespace dlock::zookeeper
