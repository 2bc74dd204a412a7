#include "backends/zookeeper/administration/chroot.hpp"

#include <utility>

namespace dlock::zookeeper {

namespace {

Options without_chroot(Options options) {
  options.chroot.clear();
  return options;
}

}  // namespace

Chroot::Chroot(Executor& executor, Options options, HandleFactory handles)
    : path_(options.chroot),
      options_(without_chroot(std::move(options))),
      executor_(executor),
      session_(executor, options_, std::move(handles), *this),
      pause_(executor),
      deadline_(executor) {}

Chroot::~Chroot() = default;

void Chroot::make(Handler done) {
  if (path_.empty()) return done(std::vector<std::string>());
  waiting_.push_back(std::move(done));
  if (waiting_.size() > 1) return;  // joins the first
  missing_ = {path_};
  made_.clear();
  problem_ = {};
  unsure_ = false;
  backoff_.reset();
  deadline_.arm(saturating_add(executor_.now(), options_.response_timeout), [this] {
    Failure why = session_.ready() ? problem_ : session_.problem();
    if (!why.code) why = {errc::unavailable, "ZooKeeper did not answer in time"};
    finish(std::move(why));
  });
  if (session_.ready()) return create();  // of one who has just been answered
  session_.want();
}

// From the bottom: a server looks at the rights to a parent before it looks whether the node is there already.
void Chroot::create() {
  if (waiting_.empty() || !session_.ready()) return;  // session_ready() goes on
  pause_.disarm();
  session_.request_sent(Session::Kind::create);
  session_.handle().create(missing_.back(), {}, NodeKind::persistent,
                           lifetime_.guard([this, round = ++round_](const Outcome& outcome, const Handle::Created&) {
                             if (round == round_) created(outcome);
                           }));
}

void Chroot::created(const Outcome& outcome) {
  session_.request_answered(Session::Kind::create, outcome);
  switch (outcome.problem) {
    case Problem::none:
      return there(true);
    case Problem::node_exists:
      return there(unsure_);
    case Problem::no_node: {
      const std::size_t slash = missing_.back().rfind('/');
      if (slash == 0) return finish(outcome.failure);
      unsure_ = false;
      missing_.push_back(missing_.back().substr(0, slash));
      return create();
    }
    case Problem::unknown_outcome:
    case Problem::session_over:
      unsure_ = true;
      return again_later(outcome.failure);
    case Problem::not_executed:
      return again_later(outcome.failure);
    case Problem::no_rights:
      return query(outcome.failure);
    case Problem::other:
      return finish(outcome.failure);
  }
}

// It may be there all the same, and then no right is needed. That it may not be read says so, too.
void Chroot::query(const Failure& why) {
  if (!session_.ready()) return;
  session_.handle().get(missing_.back(), 0,
                        lifetime_.guard([this, why, round = ++round_](const Outcome& outcome, const Handle::Node&) {
                          if (round != round_) return;
                          if (outcome.problem == Problem::none || outcome.problem == Problem::no_rights)
                            return there(false);
                          if (outcome.problem == Problem::no_node || outcome.problem == Problem::other)
                            return finish(why);
                          again_later(outcome.failure);
                        }));
}

void Chroot::there(bool by_us) {
  if (by_us) made_.push_back("node " + missing_.back());
  unsure_ = false;
  missing_.pop_back();
  if (missing_.empty()) return finish(std::nullopt);
  create();
}

void Chroot::again_later(const Failure& why) {
  problem_ = unanswered_question(why);
  pause_.arm(saturating_add(executor_.now(), backoff_.next(executor_)), [this] { create(); });
}

// Not from inside: the session is just telling.
void Chroot::finish(std::optional<Failure> why) {
  ++round_;
  pause_.disarm();
  deadline_.disarm();
  const auto waiting = std::exchange(waiting_, {});
  executor_.post(lifetime_.guard([this] {
    if (waiting_.empty()) session_.rest();
  }));
  const auto made = std::exchange(made_, {});
  const Lifetime::Watch life = lifetime_.watch();
  for (const Handler& done : waiting) {
    if (why) {
      done(*why);
    } else {
      done(made);
    }
    if (life.over()) return;
  }
}

// --- The session -----------------------------------------------------------------------------------------------------

void Chroot::session_ready(bool /*fresh*/) {
  create();
}

void Chroot::session_suspended(const Failure& why) {
  if (why.code == errc::access_denied && !waiting_.empty()) finish(why);
}

}  // namespace dlock::zookeeper
