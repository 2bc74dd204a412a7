// Requests of the session, and what its answers say about the session itself.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "backends/zookeeper/handle.hpp"
#include "backends/zookeeper/session.hpp"

namespace dlock::zookeeper {

// In tasks only, and only while ready(). Handlers are not called once the session's handle is destroyed, so whoever
// waits for one also listens for the end of the session.
class Requests {
 public:
  explicit Requests(Session& session) noexcept : session_(session) {}

  [[nodiscard]] Session& session() const noexcept { return session_; }
  [[nodiscard]] bool ready() const noexcept { return session_.ready(); }

  void create(const std::string& path, const std::string& data, NodeKind kind, Handle::Handler<Handle::Created> done) {
    session_.handle().create(path, data, kind,
                             [this, done = std::move(done)](const Outcome& outcome, Handle::Created created) {
                               heard(outcome);
                               done(outcome, std::move(created));
                             });
  }
  void remove(const std::string& path, Handle::DoneHandler done) {
    session_.handle().remove(path, [this, done = std::move(done)](const Outcome& outcome) {
      heard(outcome);
      done(outcome);
    });
  }
  void sync(const std::string& path, Handle::DoneHandler done) {
    session_.handle().sync(path, [this, done = std::move(done)](const Outcome& outcome) {
      heard(outcome);
      done(outcome);
    });
  }

  // Reads say nothing about the session: a follower answers them by itself, and may have lost the leader, which is the
  // one who ends sessions.
  void get(const std::string& path, Handle::WatchId watch, Handle::Handler<Handle::Node> done) {
    session_.handle().get(path, watch, std::move(done));
  }
  void children(const std::string& path, Handle::WatchId watch, Handle::Handler<std::vector<std::string>> done) {
    session_.handle().children(path, watch, std::move(done));
  }

 private:
  void heard(const Outcome& outcome) {
    // These the leader has answered.
    if (outcome.problem == Problem::none || outcome.problem == Problem::no_node ||
        outcome.problem == Problem::node_exists) {
      session_.heard(outcome.sent);
    }
  }

  Session& session_;
};

}  // namespace dlock::zookeeper
