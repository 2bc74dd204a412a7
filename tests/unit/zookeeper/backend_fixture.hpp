// A ZooKeeper backend on a manual engine, with an ensemble that the test plays and everything that is reported written
// down.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <dlock/spi/backend.hpp>

#include "backends/zookeeper/nodes/node_name.hpp"
#include "backends/zookeeper/session_locks.hpp"
#include "fake_handle.hpp"
#include "tests/support/manual_engine.hpp"
#include "tests/support/recording_host.hpp"

namespace dlock::zookeeper {

using namespace std::chrono_literals;

using test::Attempt;

class BackendTest : public testing::Test {
 protected:
  using Kind = FakeRequest::Kind;
  using ReleaseStatus = ReleaseOutcome::Status;
  static constexpr auto parent = "/dlock/lock";

  ~BackendTest() override {
    ensemble.fate = nullptr;  // what a test has put there is gone
    host.on_extended = nullptr;
  }

  std::unique_ptr<SessionLocks> make(const std::string& query = {}, const std::string& path = {}) {
    return make_backend<SessionLocks>(query, path);
  }
  template <class AnyBackend>
  std::unique_ptr<AnyBackend> make_backend(const std::string& query, const std::string& path = {}) {
    const BackendConfig config{.url = Url::parse("zookeeper://h" + path + (query.empty() ? "" : "?" + query)),
                               .holder = "host:1:test",
                               .lease = 10s,
                               .response_timeout = 2s,
                               .connect_timeout = 5s};
    return std::make_unique<AnyBackend>(host, parse_options(config), config.lease, ensemble.handles(),
                                        [this](const auto&... question) { ask_server(question...); });
  }

  struct Wish {
    LockKind kind = LockKind::lock;
    Mode mode = Mode::exclusive;
    std::uint32_t permits = 1;
    std::string value = {};
    bool wait = true;
    std::string name = "lock";
    std::chrono::nanoseconds lease = 10s;
  };
  std::unique_ptr<Attempt> start(Backend& of, const Wish& wish) {
    auto attempt = std::make_unique<Attempt>();
    attempt->request = {.name = wish.name,
                        .owner = host.new_owner_id(),
                        .holder = "host:1:test",
                        .lease = wish.lease,
                        .wait = wish.wait,
                        .kind = wish.kind,
                        .mode = wish.mode,
                        .permits = wish.permits,
                        .value = wish.value};
    attempt->contention = of.contend(attempt->request, *attempt);
    return attempt;
  }
  std::unique_ptr<Attempt> start(Backend& of, bool wait = true, const std::string& name = "lock") {
    return start(of, {.wait = wait, .name = name});
  }
  std::unique_ptr<Attempt> contend(Backend& of, const Wish& wish) {
    auto attempt = start(of, wish);
    engine.run();
    return attempt;
  }
  std::unique_ptr<Attempt> contend(Backend& of, bool wait = true, const std::string& name = "lock",
                                   std::chrono::nanoseconds lease = 10s) {
    return contend(of, {.wait = wait, .name = name, .lease = lease});
  }

  std::optional<ReleaseOutcome> release(Backend& of, const Attempt& attempt) {
    std::optional<ReleaseOutcome> outcome;
    of.release(*attempt.grant, [&](const ReleaseOutcome& o) { outcome = o; });
    engine.run();
    return outcome;
  }

  void close() {
    backend->close([this] { is_closed = true; });
  }

  // A node in the queue that somebody else's session has, its path.
  std::string put_member(const std::string& lock = parent, const std::string& data = "other:2:x") {
    return put_node(lock, "-lock-", data);
  }
  // The same of another kind.
  std::string put_node(const std::string& lock, const std::string& marker, const std::string& data = "other:2:x") {
    const std::string uuid = "00000000-0000-4000-8000-00000000000" + std::to_string(++others_ % 10);
    return ensemble.put(lock + "/_c_" + uuid + marker, data, 77, true).path;
  }
  // What our client has in the queue, in order.
  std::vector<std::string> own_nodes(const std::string& lock = parent, LockKind kind = LockKind::lock) const {
    std::vector<std::pair<std::int64_t, std::string>> found;
    for (const std::string& child : ensemble.children(lock)) {
      if (!ensemble.data(lock + "/" + child).starts_with("host:1:test")) continue;
      found.emplace_back(parse_queue_node(Layout::curator, child, kind).sequence, lock + "/" + child);
    }
    std::sort(found.begin(), found.end());
    std::vector<std::string> paths;
    for (auto& [sequence, path] : found) paths.push_back(std::move(path));
    return paths;
  }
  std::size_t requests_since(std::size_t start, Kind kind) const {
    return static_cast<std::size_t>(
        std::count_if(ensemble.requests.begin() + static_cast<std::ptrdiff_t>(start), ensemble.requests.end(),
                      [&](const FakeRequest& request) { return request.kind == kind && !is_heartbeat(request); }));
  }
  // The next request of the kind, and only that.
  void next(Kind kind, Fate fate) {
    ensemble.fate = [this, kind, fate](const FakeRequest& request) {
      if (request.kind != kind || is_heartbeat(request)) return Fate::answer;
      ensemble.fate = nullptr;
      return fate;
    };
  }
  bool disconnected() const { return host.connections.back() == ConnectionEvent::State::reconnecting; }

  void ask_server(const Host& server, TimePoint deadline, const std::function<void(Result<std::string>)>& done) {
    (void)engine.schedule(srvr ? engine.now() : deadline, [this, done, name = server.to_string()] {
      done(srvr ? Result<std::string>(*srvr) : Failure{errc::unavailable, name + ": no answer in time"});
    });
  }

  test::ManualEngine engine;
  test::RecordingHost host{engine};
  FakeEnsemble ensemble{engine};
  std::optional<std::string> srvr;  // what servers answer to it; nullopt: they do not
  std::unique_ptr<SessionLocks> backend = make();
  bool is_closed = false;

 private:
  int others_ = 0;
};

}  // namespace dlock::zookeeper
