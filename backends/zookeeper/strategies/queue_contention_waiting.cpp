// The way of a contention to the front of the queue.
#include <utility>

#include "backends/zookeeper/strategies/queue_contention.hpp"

namespace dlock::zookeeper {

namespace {

using std::chrono::seconds;

// Whether a watch still stands is asked rarely, at random, so that a long queue does not ask all at once; where no
// watch can be had, that is how a change is noticed.
constexpr std::chrono::nanoseconds check_min = seconds(20);
constexpr std::chrono::nanoseconds check_max = seconds(40);
constexpr std::chrono::nanoseconds poll_min = seconds(1);
constexpr std::chrono::nanoseconds poll_max = seconds(2);

}  // namespace

void QueueContention::list() {
  leave(Stage::asking);
  Watches::Interest* const watch = herd_ ? new_watch(Watches::Kind::children, lock_path_) : nullptr;
  client_.requests_.children(lock_path_, watch, when_answered(&QueueContention::listed));
}

void QueueContention::listed(const Outcome& outcome, const std::vector<std::string>& children) {
  if (outcome.problem == Problem::no_node) return start_over();
  if (outcome.problem != Problem::none) return trouble(outcome);
  const auto queue = judge(children);
  if (!queue) return;
  QueueWalk::Step step = walk_.listed(*queue);
  if (queue->semaphore) return follow_outside_semaphore(step);
  follow(std::move(step));
}

void QueueContention::follow_outside_semaphore(const QueueWalk::Step& step) {
  if (!can_ask()) return;
  client_.requests_.occupied_semaphore(lock_path_,
                                       guarded([this, step](const Outcome& outcome, std::string_view occupied) {
                                         if (outcome.problem != Problem::none) return trouble(outcome);
                                         if (!occupied.empty())
                                           return fail(foreign_child(lock_path_, occupied, semaphore_layout));
                                         follow(step);
                                       }));
}

void QueueContention::follow(QueueWalk::Step step) {
  switch (step.next) {
    case Next::list:
      return resume();
    case Next::watch:
      if (!request_.wait) return busy();
      if (herd_) return keep_watching();
      return watch(step.node);
    case Next::weigh:
      return weigh(step.node);
    case Next::verify:
      return verify(step.node);
    case Next::confirm:
      before_there_ = false;
      return confirm(false);
    case Next::wait:
      return keep_watching();
    case Next::grant:
      return grant();
    case Next::start_over:
      return start_over();
    case Next::refuse:
      return fail(std::move(step.failure));
  }
}

void QueueContention::watch(const std::string& node) {
  if (!can_ask()) return;
  leave(Stage::asking);
  client_.requests_.get(path_of(node), new_watch(Watches::Kind::data, path_of(node)),
                        guarded([this](const Outcome& outcome, const Handle::Node&) {
                          if (outcome.problem == Problem::no_node) return follow(walk_.gone());
                          if (outcome.problem != Problem::none) return trouble(outcome);
                          keep_watching();
                        }));
}

void QueueContention::weigh(const std::string& node) {
  if (!can_ask()) return;
  client_.requests_.get(path_of(node), guarded([this](const Outcome& outcome, const Handle::Node& answer) {
                          if (outcome.problem == Problem::none) return follow(walk_.weighed(answer.stat.created));
                          if (outcome.problem == Problem::no_node) return follow(walk_.weighed(std::nullopt));
                          trouble(outcome);
                        }));
}

void QueueContention::verify(const std::string& node) {
  leave(Stage::asking);
  const std::string path = path_of(node);
  before_there_ = true;
  client_.requests_.get(path, new_watch(Watches::Kind::data, path),
                        guarded([this](const Outcome& outcome, const Handle::Node&) {
                          if (outcome.problem == Problem::no_node) {
                            before_there_ = false;
                            watch_.reset();  // told already
                          } else if (outcome.problem != Problem::none) {
                            trouble(outcome);
                          }
                        }));
  confirm(true);
}

// asked: about the one before us, too; that is answered first.
void QueueContention::confirm(bool asked) {
  if (!can_ask()) return;
  if (!asked) leave(Stage::asking);
  client_.requests_.get(path_of(walk_.node()), 0, guarded([this](const Outcome& outcome, const Handle::Node& answer) {
                          if (outcome.problem == Problem::no_node) {
                            return follow(walk_.verified(before_there_, std::nullopt));
                          }
                          if (outcome.problem != Problem::none) return trouble(outcome);
                          follow(walk_.verified(before_there_, answer.stat.created));
                        }));
}

void QueueContention::changed() {
  if (stage_ == Stage::asking) changed_meanwhile_ = true;
  if (stage_ != Stage::watching || !can_ask()) return;
  if (herd_) return list();
  follow(walk_.changed());
}

// Whether a change was missed.
void QueueContention::check() {
  if (stage_ != Stage::watching || !can_ask()) return;
  if (herd_) return list();
  follow(walk_.check());
}

void QueueContention::keep_watching() {
  stage_ = Stage::watching;
  if (changed_meanwhile_) return changed();
  backoff_.reset();
  Executor& executor = client_.host_.executor();
  const auto pause =
      watch_ ? random_between(check_min, check_max, executor) : random_between(poll_min, poll_max, executor);
  timer_.arm(saturating_add(executor.now(), pause), [this] { check(); });
  sink_.busy();
}

std::optional<Queue> QueueContention::judge(const std::vector<std::string>& children) {
  Queue queue = judge_queue(client_.options_.layout, lock_path_, children);
  if (queue.problem) {
    fail(*queue.problem);
    return std::nullopt;
  }
  if (!queue.unknown.empty()) client_.warn_of_unknown_child(request_.name, lock_path_, std::string(queue.unknown));
  return queue;
}

Watches::Interest* QueueContention::new_watch(Watches::Kind kind, const std::string& path) {
  watch_ = client_.watches_.watch(kind, path, [this] { changed(); });
  return watch_.get();
}

}  // namespace dlock::zookeeper
