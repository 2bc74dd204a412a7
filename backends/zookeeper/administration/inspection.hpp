// Queries of locks, breaking them, and forgetting their names.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include <dlock/spi/backend.hpp>

#include "backends/zookeeper/nodes/requests.hpp"
#include "backends/zookeeper/options.hpp"

namespace dlock::zookeeper {

// Each answers within the response timeout. In tasks only.
class Inspection {
 public:
  Inspection(Executor& executor, const Options& options, Requests& requests)
      : executor_(executor), options_(options), requests_(requests) {}

  // That the parent of locks may be listed is part of it: a missing node has nothing that could refuse the client.
  void ping(const std::string& name, Backend::Handler<bool> done);
  void inspect(LockKind kind, const std::string& name, Backend::Handler<LockInfo> done);
  void list(LockKind kind, Backend::Handler<std::vector<LockInfo>> done);
  // Removes the nodes of those who hold it.
  void break_lock(LockKind kind, const std::string& name, Backend::Handler<bool> done);
  // Removes the node of the lock, at any time: tokens are the ensemble's.
  void forget(const Forgetting& what, Backend::Handler<std::vector<std::string>> done);

  void session_ready();
  // Trying again does not help.
  void session_refused(const Failure& why);

  // How old an answer may be: of_session where something of this session has been answered since the query began.
  enum class Age { of_query, of_session };

 private:
  using Names = std::vector<std::string>;
  // A query that is not answered yet.
  struct Open {
    explicit Open(Executor& executor) : deadline(executor) {}
    Timer deadline;
    std::function<void()> begin;  // once there is a session; nullptr: it has begun
    std::function<void(const Failure&)> fail;
  };
  template <class T>
  class Query;

  // begin(query) is called once there is a session.
  template <class T, class Begin>
  void start(Backend::Handler<T> done, Begin begin);
  template <class T, class Then>
  void read_parent(const Query<T>& query, LockKind kind, Then then);
  template <class T, class Then>
  void read(const Query<T>& query, LockKind kind, const std::string& name, Age age, Then then);
  void break_one(LockKind kind, const std::string& name, int attempts_left, const Query<bool>& query);
  void forget_one(LockKind kind, const std::string& name, int attempts_left, const Query<Names>& query);

  Executor& executor_;
  const Options& options_;
  Requests& requests_;
  std::uint64_t last_id_ = 0;
  std::map<std::uint64_t, Open> open_;
};

}  // namespace dlock::zookeeper
