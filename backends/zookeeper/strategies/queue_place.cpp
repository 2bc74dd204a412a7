#include "backends/zookeeper/strategies/queue_place.hpp"

#include <algorithm>
#include <utility>

#include "util/names.hpp"

namespace dlock::zookeeper {

namespace {

// A server removes empty containers once a minute or so; whatever removes ours again and again is something else.
constexpr int max_parents_made = 8;

QueuePlace::Answer answer_of(const Outcome& outcome) {
  const bool final = outcome.problem == Problem::no_rights || outcome.problem == Problem::other;
  return {.kind = final ? QueuePlace::Answer::Kind::refused : QueuePlace::Answer::Kind::trouble,
          .failure = outcome.failure};
}

}  // namespace

QueuePlace::QueuePlace(Requests& requests, Parents& parents, Removals& tombstones, Layout layout, const Claim& claim,
                       std::string lock_path)
    : requests_(requests),
      parents_(parents),
      tombstones_(tombstones),
      layout_(layout),
      claim_(claim),
      lock_path_(std::move(lock_path)) {}

// --- Taking it -------------------------------------------------------------------------------------------------------

void QueuePlace::take(const OwnerId& random, const std::string& data, Handler done) {
  guid_ = guid_text(layout_, random);
  epoch_ = requests_.session().epoch();
  state_ = State::asked;
  creation_ = std::make_shared<Creation>();
  // If we have given up, the tombstone is told; `this` is looked at only if not.
  requests_.create(
      path_of(queue_node_prefix(layout_, guid_, claim_)), data, NodeKind::ephemeral_sequential,
      [&tombstones = tombstones_, creation = creation_, lock_path = lock_path_,
       tell_us = guarded([this, done = std::move(done)](const Outcome& outcome, const Handle::Created& node) {
         created(outcome, node, done);
       })](const Outcome& outcome, const Handle::Created& node) {
        if (!creation->tombstone) return tell_us(outcome, node);
        tombstones.created(*creation->tombstone, outcome, lock_path + "/" + std::string(last_component(node.path)));
      });
}

void QueuePlace::created(const Outcome& outcome, const Handle::Created& node, const Handler& done) {
  state_ = State::none;
  switch (outcome.problem) {
    case Problem::none:
      return place(std::string(last_component(node.path)), node.stat, done);
    case Problem::no_node:
      return make_parents(done);
    case Problem::unknown_outcome:
    case Problem::session_over:
      state_ = State::unknown;
      return done({.kind = Answer::Kind::trouble, .failure = outcome.failure});
    case Problem::not_executed:
      return done({.kind = Answer::Kind::trouble, .failure = outcome.failure});
    case Problem::node_exists:
    case Problem::no_rights:
      return done({.kind = Answer::Kind::refused, .failure = outcome.failure});
    case Problem::other:
      return look_above(outcome.failure, done);
  }
}

void QueuePlace::place(const std::string& node, const Stat& stat, const Handler& done) {
  state_ = State::there;
  node_ = node;
  position_ = {parse_queue_node(layout_, node, claim_.kind).sequence, stat.created};
  if (stat.owner == requests_.session().id()) return done({.kind = Answer::Kind::there});
  // Not of this session, so it goes when that one does, whatever becomes of ours.
  give_up();
  done({.kind = Answer::Kind::later});
}

void QueuePlace::make_parents(const Handler& done) {
  if (++parents_made_ > max_parents_made) {
    parents_made_ = 0;
    return done({.kind = Answer::Kind::trouble,
                 .failure = {errc::unavailable,
                             "node " + util::quoted(lock_path_) + " is removed as soon as dlock creates it"}});
  }
  parents_.make(lock_path_, [this, &parents = parents_, path = lock_path_, self = lifetime_.watch(), round = round_,
                             done](const Parents::Made& made) {
    if (self.over() || round != round_) {
      if (made.by_us) parents.withdraw(path);
      return;
    }
    switch (made.status) {
      case Parents::Made::Status::made:
        return done({.kind = Answer::Kind::parents_made});
      case Parents::Made::Status::again:
        return done({.kind = Answer::Kind::trouble, .failure = made.failure});
      case Parents::Made::Status::refused:
        return done({.kind = Answer::Kind::refused, .failure = made.failure});
    }
  });
}

// The server takes no nodes below the lock's: what is that one?
void QueuePlace::look_above(const Failure& why, const Handler& done) {
  if (!requests_.ready()) return done({.kind = Answer::Kind::refused, .failure = why});
  requests_.get(
      lock_path_, guarded([this, why, done](const Outcome& outcome, const Handle::Node& node) {
        Answer answer{.kind = Answer::Kind::refused, .failure = why};
        if (outcome.problem == Problem::none && node.stat.owner != 0) {
          answer.failure = {
              errc::protocol,
              "node " + util::quoted(lock_path_) +
                  " is ephemeral: the lock is held with strategy=ephemeral, which cannot be mixed with a queue"};
        }
        done(answer);
      }));
}

// --- An outcome that is not known ------------------------------------------------------------------------------------

void QueuePlace::find(Handler done) {
  // The create may have gone through another server than the one that is asked now.
  requests_.children_latest(lock_path_, guarded([this, done = std::move(done)](
                                                    const Outcome& outcome, const std::vector<std::string>& children) {
                              if (outcome.problem != Problem::none && outcome.problem != Problem::no_node)
                                return done(answer_of(outcome));
                              found(children, done);
                            }));
}

void QueuePlace::found(const std::vector<std::string>& children, const Handler& done) {
  const auto ours = std::find_if(children.begin(), children.end(),
                                 [this](const std::string& child) { return child.find(guid_) != std::string::npos; });
  if (ours == children.end()) {
    state_ = State::none;  // and never will be: what was under way at the other server is refused by now
    return done({.kind = Answer::Kind::gone});
  }
  if (!requests_.ready()) return done({.kind = Answer::Kind::later});
  requests_.get(path_of(*ours), guarded([this, node = *ours, done](const Outcome& outcome, const Handle::Node& answer) {
                  if (outcome.problem == Problem::none) return place(node, answer.stat, done);
                  if (outcome.problem != Problem::no_node) return done(answer_of(outcome));
                  state_ = State::none;
                  done({.kind = Answer::Kind::gone});
                }));
}

// --- Leaving it ------------------------------------------------------------------------------------------------------

void QueuePlace::give_up() {
  ++round_;
  if (state_ == State::asked) {
    creation_->tombstone = tombstones_.await(own_node());
  } else if (state_ == State::there || state_ == State::unknown) {
    tombstones_.remove(own_node());
  }
  state_ = State::none;
}

OwnNode QueuePlace::hand_over() {
  OwnNode own = own_node();
  state_ = State::none;
  return own;
}

OwnNode QueuePlace::own_node() const {
  const bool there = state_ == State::there;
  return {.lock_path = lock_path_,
          .path = there ? path_of(node_) : std::string(),
          .guid = guid_,
          .epoch = epoch_,
          .created = there ? position_.created : 0};
}

}  // namespace dlock::zookeeper
