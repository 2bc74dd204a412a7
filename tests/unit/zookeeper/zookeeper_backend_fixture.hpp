// A client with several sessions, on a manual engine, with an ensemble that the test plays.
#pragma once

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "backend_fixture.hpp"
#include "backends/zookeeper/zookeeper_backend.hpp"

namespace dlock::zookeeper {

class ZookeeperBackendTest : public BackendTest {
 protected:
  using Attempts = std::vector<std::unique_ptr<Attempt>>;
  static constexpr int full = static_cast<int>(ZookeeperBackend::busy_from);

  std::unique_ptr<ZookeeperBackend> make_group(const std::string& query = {}) {
    return make_backend<ZookeeperBackend>(query);
  }
  // With its first session.
  std::unique_ptr<ZookeeperBackend> make_connected(const std::string& query = {}) {
    auto group = make_group(query);
    const auto attempt = contend(*group, true, "first");
    EXPECT_TRUE(attempt->grant);
    EXPECT_EQ(release(*group, *attempt)->status, ReleaseStatus::released);
    return group;
  }
  // The same in an empty ensemble: what queues leave behind is in the way of strategy=ephemeral.
  std::unique_ptr<ZookeeperBackend> make_alone(const std::string& query) {
    ensemble.fate = nullptr;
    if (ensemble.exists("/dlock")) ensemble.remove("/dlock");
    ephemeral_ = query.starts_with("strategy=ephemeral");
    return make_connected(query);
  }
  // From now on creates are carried out, but not answered.
  void hold_creates() {
    ensemble.fate = [](const FakeRequest& request) {
      return request.kind == Kind::create ? Fate::hold_answer : Fate::answer;
    };
  }
  void answer() {
    ensemble.fate = nullptr;
    ensemble.release_answers();
    engine.run();
  }
  // Each of a name of its own, that nobody waits for.
  void add(ZookeeperBackend& group, Attempts& attempts, int count) {
    for (int i = 0; i < count; ++i) {
      const std::string name = "n" + std::to_string(++names_);
      if (!ensemble.exists("/dlock/" + name) && !ephemeral_) (void)ensemble.put("/dlock/" + name);
      attempts.push_back(contend(group, true, name));
    }
  }
  // Those who come find all sessions busy, for as long as it takes to open another one.
  void press(ZookeeperBackend& group, Attempts& attempts) {
    engine.advance(2 * ZookeeperBackend::busy_for);  // what was before does not count
    add(group, attempts, 1);
    engine.advance(ZookeeperBackend::busy_for);
    add(group, attempts, 1);
  }
  void load(ZookeeperBackend& group, Attempts& attempts) {
    add(group, attempts, full);
    press(group, attempts);
  }
  // So many sessions are opened by load, and one acquire is in the last of them.
  Attempts busy(ZookeeperBackend& group, int sessions) {
    hold_creates();
    Attempts attempts;
    for (int i = 1; i < sessions; ++i) load(group, attempts);
    add(group, attempts, 1);
    answer();
    for (const auto& attempt : attempts) EXPECT_TRUE(attempt->grant);
    return attempts;
  }
  void end(ZookeeperBackend& group, Attempts& attempts) {
    for (const auto& attempt : attempts) {
      EXPECT_EQ(release(group, *attempt)->status, ReleaseStatus::released);
    }
    attempts.clear();
  }
  std::int64_t session_of(const Attempt& attempt) const {
    const std::string path = "/dlock/" + attempt.request.name;
    const auto nodes = ensemble.children(path);
    if (nodes.empty()) return ensemble.exists(path) ? ensemble.stat(path).owner : 0;
    return ensemble.stat(path + "/" + nodes.front()).owner;
  }
  std::set<std::int64_t> owners_in(const std::string& path) const {
    std::set<std::int64_t> owners;
    for (const std::string& node : ensemble.children(path)) owners.insert(ensemble.stat(path + "/" + node).owner);
    return owners;
  }
  std::size_t sessions_of(const Attempts& attempts) const {
    std::set<std::int64_t> sessions;
    for (const auto& attempt : attempts) sessions.insert(session_of(*attempt));
    return sessions.size();
  }

 private:
  int names_ = 0;
  bool ephemeral_ = false;
};

}  // namespace dlock::zookeeper
