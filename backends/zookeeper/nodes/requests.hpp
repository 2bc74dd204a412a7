// Requests in the session, and what their answers prove about the session itself.
#pragma once

#include <cstddef>
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
  using Names = std::vector<std::string>;
  // A request about locks is sent now: the session is notified of it, and of its answer before done.
  template <class Done>
  [[nodiscard]] auto sent(Kind kind, Done done) {
    session_.request_sent(kind);
    if (kind != Kind::read) ++writes_;
    return [this, kind, done = std::move(done)](const Outcome& outcome, auto... answer) {
      session_.request_answered(kind, outcome);
      if (kind != Kind::read) --writes_;
      // Reads and syncs prove nothing about the session: a server that has lost the others answers them by itself for a
      // while, and the others may end the session. These answers are the leader's.
      const bool by_leader = outcome.problem == Problem::none || outcome.problem == Problem::no_node ||
                             outcome.problem == Problem::node_exists;
      if (kind != Kind::read && by_leader) session_.acknowledged(outcome.sent);
      done(outcome, std::move(answer)...);
    };
  }

 public:
  explicit Requests(Session& session) noexcept : session_(session) {}

  [[nodiscard]] Session& session() const noexcept { return session_; }
  [[nodiscard]] bool ready() const noexcept { return session_.ready(); }
  // Why a request was not answered; if the session is not ready, its own reason is more specific.
  [[nodiscard]] Failure reason_of(const Failure& why) const { return ready() ? why : session_.problem(); }
  // Creates, removes and changes that are not answered yet.
  [[nodiscard]] std::size_t writes_under_way() const noexcept { return writes_; }

  void create(const std::string& path, const std::string& data, NodeKind kind, Handle::Handler<Handle::Created> done) {
    session_.handle().create(path, data, kind, sent(Kind::create, std::move(done)));
  }
  void set(const std::string& path, const std::string& data, Handle::DoneHandler done) {
    session_.handle().set(path, data, sent(Kind::set, std::move(done)));
  }
  void remove(const std::string& path, Handle::DoneHandler done) {
    session_.handle().remove(path, sent(Kind::remove, std::move(done)));
  }
  void remove_childless(const std::string& path, Handle::DoneHandler done) {
    session_.handle().remove_childless(path, sent(Kind::remove, std::move(done)));
  }

  // watch: to be set; nullptr: none.
  void get(const std::string& path, Watches::Interest* watch, Handle::Handler<Handle::Node> done) {
    if (watch == nullptr) return get(path, std::move(done));
    session_.handle().get(path, watch->id(), sent(Kind::read, watch->counted(std::move(done))));
  }
  void exists(const std::string& path, Watches::Interest& watch, Handle::Handler<Stat> done) {
    session_.handle().exists(path, watch.id(), sent(Kind::read, watch.counted(std::move(done))));
  }
  void children(const std::string& path, Watches::Interest* watch, Handle::Handler<Names> done) {
    if (watch == nullptr) return children(path, std::move(done));
    session_.handle().children(path, watch->id(), sent(Kind::read, watch->counted(std::move(done))));
  }

  // Without a watch.
  void get(const std::string& path, Handle::Handler<Handle::Node> done) {
    session_.handle().get(path, 0, sent(Kind::read, std::move(done)));
  }
  void children(const std::string& path, Handle::Handler<Names> done) {
    session_.handle().children(path, 0, sent(Kind::read, std::move(done)));
  }
  // The same, no older than the call, whatever server answers: costs a write without effect.
  void get_latest(const std::string& path, Handle::Handler<Handle::Node> done) {
    get(path, behind(confirmation(), std::move(done)));
  }
  void children_latest(const std::string& path, Handle::Handler<Names> done) {
    children(path, behind(confirmation(), std::move(done)));
  }
  // The same without the write: older only if the leader has been deposed and does not know it yet.
  void get_synced(const std::string& path, Handle::Handler<Handle::Node> done) {
    get(path, behind(synced(path), std::move(done)));
  }
  void children_synced(const std::string& path, Handle::Handler<Names> done) {
    children(path, behind(synced(path), std::move(done)));
  }

  // Which of Curator's semaphore_children of the lock's node has children; "": no semaphore is in use. A client that
  // acquires moves from the first to the second, and is below both for a moment, so queries in this order miss none
  // that came before.
  void occupied_semaphore(const std::string& lock_path, Handle::Handler<std::string_view> done) {
    const std::string path = lock_path + "/";
    const auto first = std::make_shared<std::pair<Outcome, Handle::Node>>();
    get(path + std::string(semaphore_children[0]), [first](const Outcome& outcome, Handle::Node node) {
      *first = {outcome, std::move(node)};
    });
    get(path + std::string(semaphore_children[1]),
        [first, done = std::move(done)](const Outcome& outcome, const Handle::Node& node) {
          if (failed(first->first) || failed(outcome)) return done(failed(first->first) ? first->first : outcome, {});
          if (node.stat.children > 0) return done({}, semaphore_children[1]);
          done({}, first->second.stat.children > 0 ? semaphore_children[0] : "");
        });
  }

 private:
  using First = std::shared_ptr<Outcome>;

  [[nodiscard]] static bool failed(const Outcome& outcome) noexcept {
    return outcome.problem != Problem::none && outcome.problem != Problem::no_node;
  }

  [[nodiscard]] First confirmation() {
    auto first = std::make_shared<Outcome>();
    session_.confirm_leader([first](const Outcome& outcome) { *first = outcome; });
    return first;
  }
  [[nodiscard]] First synced(const std::string& path) {
    auto first = std::make_shared<Outcome>();
    session_.handle().sync(path, [first](const Outcome& outcome) { *first = outcome; });
    return first;
  }
  // If the connection breaks between the two requests, the next server may answer the second one. It counts only if the
  // first one was answered: no server accepts a session that has seen more than itself.
  template <class T>
  [[nodiscard]] static Handle::Handler<T> behind(First first, Handle::Handler<T> done) {
    return [first = std::move(first), done = std::move(done)](const Outcome& outcome, T answer) {
      done(failed(*first) ? *first : outcome, std::move(answer));
    };
  }

  Session& session_;
  std::size_t writes_ = 0;
};

}  // namespace dlock::zookeeper
