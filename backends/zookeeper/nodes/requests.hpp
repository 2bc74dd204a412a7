// Requests of the session, and what its answers say about the session itself.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "backends/zookeeper/connection/handle.hpp"
#include "backends/zookeeper/connection/session.hpp"
#include "backends/zookeeper/connection/watches.hpp"
#include "backends/zookeeper/nodes/node_name.hpp"

namespace dlock::zookeeper {

// In tasks only, and only while ready(). Handlers are not called once the session's handle is destroyed, so a caller
// that waits for one also listens for the end of the session.
class Requests {
  using Kind = Session::Kind;
  // Tells the session of a request about locks that is sent now, and of its answer before done.
  template <class Done>
  [[nodiscard]] auto answered(Kind kind, Done done) {
    session_.asked(kind);
    return [this, kind, done = std::move(done)](const Outcome& outcome, auto... answer) {
      session_.answered(kind, outcome);
      done(outcome, std::move(answer)...);
    };
  }

 public:
  explicit Requests(Session& session) noexcept : session_(session) {}

  [[nodiscard]] Session& session() const noexcept { return session_; }
  [[nodiscard]] bool ready() const noexcept { return session_.ready(); }
  // Why a request was not answered: while the session is not ready, that knows more.
  [[nodiscard]] Failure reason_of(const Failure& why) const { return ready() ? why : session_.problem(); }
  // Creates and removes of the latest session that are not answered yet.
  [[nodiscard]] std::size_t writes_under_way() const noexcept { return epoch_ == session_.epoch() ? writes_ : 0; }

  void create(const std::string& path, const std::string& data, NodeKind kind, Handle::Handler<Handle::Created> done) {
    session_.handle().create(path, data, kind,
                             answered(Kind::create, [this, epoch = write(), done = std::move(done)](
                                                        const Outcome& outcome, Handle::Created created) {
                               written(epoch);
                               heard(outcome);
                               done(outcome, std::move(created));
                             }));
  }
  void set(const std::string& path, const std::string& data, Handle::DoneHandler done) {
    session_.handle().set(path, data, written(Kind::set, std::move(done)));
  }
  void remove(const std::string& path, Handle::DoneHandler done) {
    session_.handle().remove(path, written(Kind::remove, std::move(done)));
  }
  void remove_childless(const std::string& path, Handle::DoneHandler done) {
    session_.handle().remove_childless(path, written(Kind::remove, std::move(done)));
  }

  // Reads and syncs say nothing about the session: a server answers them by itself for a while after it has lost the
  // others, and those end sessions.
  void get(const std::string& path, Handle::Handler<Handle::Node> done) {
    session_.handle().get(path, 0, answered(Kind::read, std::move(done)));
  }
  void children(const std::string& path, Handle::Handler<std::vector<std::string>> done) {
    session_.handle().children(path, 0, answered(Kind::read, std::move(done)));
  }
  // The same, setting a watch; nullptr: none can be set.
  void get(const std::string& path, Watches::Interest* watch, Handle::Handler<Handle::Node> done) {
    if (watch == nullptr) return get(path, std::move(done));
    session_.handle().get(path, watch->id(), answered(Kind::read, watch->counted(std::move(done))));
  }
  void exists(const std::string& path, Watches::Interest& watch, Handle::Handler<Stat> done) {
    session_.handle().exists(path, watch.id(), answered(Kind::read, watch.counted(std::move(done))));
  }
  void children(const std::string& path, Watches::Interest* watch, Handle::Handler<std::vector<std::string>> done) {
    if (watch == nullptr) return children(path, std::move(done));
    session_.handle().children(path, watch->id(), answered(Kind::read, watch->counted(std::move(done))));
  }

  // The same, no older than the call, whatever server is asked: costs a write of nothing.
  void get_latest(const std::string& path, Handle::Handler<Handle::Node> done) {
    session_.handle().get(path, 0, answered(Kind::read, behind_agreement<Handle::Node>(std::move(done))));
  }
  void children_latest(const std::string& path, Handle::Handler<std::vector<std::string>> done) {
    session_.handle().children(path, 0,
                               answered(Kind::read, behind_agreement<std::vector<std::string>>(std::move(done))));
  }
  // The same without the write: older only where the leader has been deposed and does not know it yet.
  void get_synced(const std::string& path, Handle::Handler<Handle::Node> done) {
    session_.handle().get(path, 0, answered(Kind::read, behind_sync<Handle::Node>(path, std::move(done))));
  }
  void children_synced(const std::string& path, Handle::Handler<std::vector<std::string>> done) {
    session_.handle().children(path, 0,
                               answered(Kind::read, behind_sync<std::vector<std::string>>(path, std::move(done))));
  }

  // Which of Curator's semaphore_children of the lock's node has children; "": there is no semaphore in use. On
  // their way in others go from the first to the second, and are below both for a moment, so that asking in this order
  // misses none that came before.
  void occupied_semaphore(const std::string& lock_path, Handle::Handler<std::string_view> done) {
    struct Seen {
      Outcome trouble;
      std::string_view occupied;
    };
    const auto look = [seen = std::make_shared<Seen>()](std::string_view child, const Outcome& outcome,
                                                        const Handle::Node& node) -> Seen& {
      if (seen->trouble.problem != Problem::none) return *seen;
      if (outcome.problem != Problem::none && outcome.problem != Problem::no_node) seen->trouble = outcome;
      if (outcome.problem == Problem::none && node.stat.children > 0) seen->occupied = child;
      return *seen;
    };
    const auto path_of = [&](std::string_view child) { return lock_path + "/" + std::string(child); };
    get(path_of(semaphore_children[0]), [look](const Outcome& outcome, const Handle::Node& node) {
      (void)look(semaphore_children[0], outcome, node);  // told with the next answer
    });
    get(path_of(semaphore_children[1]),
        [look, done = std::move(done)](const Outcome& outcome, const Handle::Node& node) {
          const Seen& seen = look(semaphore_children[1], outcome, node);
          done(seen.trouble, seen.occupied);
        });
  }

 private:
  template <class T>
  [[nodiscard]] Handle::Handler<T> behind_agreement(Handle::Handler<T> done) {
    const auto agreed = std::make_shared<Outcome>();
    session_.agree([agreed](const Outcome& outcome) { *agreed = outcome; });
    return behind(agreed, std::move(done));
  }
  template <class T>
  [[nodiscard]] Handle::Handler<T> behind_sync(const std::string& path, Handle::Handler<T> done) {
    const auto synced = std::make_shared<Outcome>();
    session_.handle().sync(path, [synced](const Outcome& outcome) { *synced = outcome; });
    return behind(synced, std::move(done));
  }
  // A connection may break between the two requests, and the second one be answered by the next server. It counts only
  // if the first one was answered: no server takes over a session that has seen more than itself.
  template <class T>
  [[nodiscard]] static Handle::Handler<T> behind(std::shared_ptr<const Outcome> first, Handle::Handler<T> done) {
    return [first = std::move(first), done = std::move(done)](const Outcome& outcome, T answer) {
      const bool failed = first->problem != Problem::none && first->problem != Problem::no_node;
      done(failed ? *first : outcome, std::move(answer));
    };
  }

  // Answers the epoch that it is counted in: what a session never answers does not count for the next one.
  [[nodiscard]] std::uint64_t write() noexcept {
    if (std::exchange(epoch_, session_.epoch()) != session_.epoch()) writes_ = 0;
    ++writes_;
    return epoch_;
  }
  [[nodiscard]] Handle::DoneHandler written(Kind kind, Handle::DoneHandler done) {
    return answered(kind, [this, epoch = write(), done = std::move(done)](const Outcome& outcome) {
      written(epoch);
      heard(outcome);
      done(outcome);
    });
  }
  void written(std::uint64_t epoch) noexcept {
    if (epoch == epoch_) --writes_;
  }

  void heard(const Outcome& outcome) {
    // These the leader has answered.
    if (outcome.problem == Problem::none || outcome.problem == Problem::no_node ||
        outcome.problem == Problem::node_exists) {
      session_.heard(outcome.sent);
    }
  }

  Session& session_;
  std::uint64_t epoch_ = 0;  // of the session whose writes are counted
  std::size_t writes_ = 0;
};

}  // namespace dlock::zookeeper
