// Queries wait for a session, and are answered at the response timeout at the latest.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <utility>

#include <dlock/spi/backend.hpp>
#include <dlock/spi/backoff.hpp>
#include <dlock/spi/executor.hpp>

#include "backends/zookeeper/connection/session.hpp"

namespace dlock::zookeeper {

// In tasks only.
class Queries {
 public:
  // All copies are the same query.
  template <class T>
  class Query;

  Queries(Executor& executor, Session& session, std::chrono::nanoseconds response_timeout)
      : executor_(executor), session_(session), response_timeout_(response_timeout) {}

  // Calls begin(query) when the session is ready, now or later. What it reads then is no older than the query.
  template <class T, class Begin>
  void start(Backend::Handler<T> done, Begin begin) {
    const Query<T> query(*this, ++last_id_, std::move(done));
    open([query, begin = std::move(begin)] { begin(query); }, [query](Failure why) { query.answer(std::move(why)); });
  }
  // The deadline of a query that starts now.
  [[nodiscard]] TimePoint answer_by() const { return saturating_add(executor_.now(), response_timeout_); }
  // None is unanswered.
  [[nodiscard]] bool empty() const noexcept { return open_.empty(); }

  void session_ready();
  // A retry does not help.
  void session_refused(const Failure& why);

 private:
  struct Open {
    explicit Open(Executor& executor) : deadline(executor), pause(executor) {}
    std::function<void()> begin;  // nullptr: it has begun
    std::function<void(Failure)> fail;
    Timer deadline;
    Failure problem;  // of the last attempt
    Backoff backoff{std::chrono::milliseconds(500)};
    Timer pause;
  };

  void open(std::function<void()> begin, std::function<void(Failure)> fail);
  void begin(std::uint64_t id, Open& open);
  void fail(std::uint64_t id, Failure why);

  Executor& executor_;
  Session& session_;
  const std::chrono::nanoseconds response_timeout_;
  std::uint64_t last_id_ = 0;
  std::map<std::uint64_t, Open> open_;
};

template <class T>
class Queries::Query {
 public:
  // No effect if it is answered already.
  void answer(Result<T> result) const {
    const auto done = done_;  // which may be the end of us
    if (queries_.open_.erase(id_) > 0) (*done)(std::move(result));
  }
  // Whether to send another request. If the session is not ready, that is the answer.
  [[nodiscard]] bool goes_on() const {
    if (!queries_.open_.contains(id_)) return false;
    if (queries_.session_.ready()) return true;
    answer(unanswered_question(queries_.session_.problem()));
    return false;
  }
  // The handler of a request that others follow: calls then(whether the node exists, the node), unless the request was
  // not answered.
  template <class Then>
  [[nodiscard]] auto on_answer(Then then) const {
    return [query = *this, then = std::move(then)](const Outcome& outcome, const auto& what) {
      const bool there = outcome.problem == Problem::none;
      if (!there && outcome.problem != Problem::no_node) return query.answer(unanswered_question(outcome.failure));
      if (query.goes_on()) then(there, what);
    };
  }
  // An attempt failed: makes another one after a pause.
  void retry(Failure why, std::function<void()> attempt) const {
    const auto open = queries_.open_.find(id_);
    if (open == queries_.open_.end()) return;
    open->second.problem = std::move(why);
    open->second.pause.arm(saturating_add(queries_.executor_.now(), open->second.backoff.next(queries_.executor_)),
                           std::move(attempt));
  }

 private:
  friend class Queries;
  Query(Queries& queries, std::uint64_t id, Backend::Handler<T> done)
      : queries_(queries), id_(id), done_(std::make_shared<const Backend::Handler<T>>(std::move(done))) {}

  Queries& queries_;
  std::uint64_t id_;
  std::shared_ptr<const Backend::Handler<T>> done_;
};

}  // namespace dlock::zookeeper
