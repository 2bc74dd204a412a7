// Tests in which Curator, kazoo and ZooKeeper's recipe take part themselves.
#pragma once

#include <map>
#include <memory>
#include <ostream>
#include <string>
#include <utility>

#include "network/foreign_client.hpp"
#include "zookeeper/zookeeper_test.hpp"

namespace dlock::test {

// Curator's locks and those of ZooKeeper's recipe in Java (Debian: libcurator-recipes-java; driven in JavaScript by
// librhino-java, which needs no compiler), and those of kazoo (python3-kazoo), at the address of a server.
[[nodiscard]] ForeignClient::Command curator(const std::string& address);
[[nodiscard]] ForeignClient::Command kazoo(const std::string& address);

enum class Library { curator, kazoo };

// A lock of another program, and a client of ours.
struct Pair {
  Library library;
  const char* kind;
  const char* parameters;

  friend std::ostream& operator<<(std::ostream& out, const Pair& pair) {
    return out << pair.kind << ", " << pair.parameters;
  }
};

// One process of each for all tests, until one fails.
class InteroperationTest : public ZooKeeperTest {
 protected:
  using ZooKeeperTest::ZooKeeperTest;
  void TearDown() override {
    if (HasFailure()) end_clients();
    ZooKeeperTest::TearDown();
  }
  static void end_clients() { clients().clear(); }

  [[nodiscard]] ForeignLock foreign(const Pair& pair, const std::string& name, LockKind kind = LockKind::lock) {
    auto& client = clients()[{pair.library, server.address()}];
    const auto program = pair.library == Library::curator ? curator : kazoo;
    if (!client) client = std::make_unique<ForeignClient>(program(server.address()));
    return client->lock(pair.kind, path(name, kind));
  }
  [[nodiscard]] Client client_of(const Pair& pair) const {
    return steady({}, std::string(pair.parameters) + "&" + long_session);
  }
  // Another one for each test of a pair.
  [[nodiscard]] std::string new_name() { return "shared-" + std::to_string(++names_); }

 private:
  static std::map<std::pair<Library, std::string>, std::unique_ptr<ForeignClient>>& clients() {
    static std::map<std::pair<Library, std::string>, std::unique_ptr<ForeignClient>> all;
    return all;
  }

  int names_ = 0;
};

}  // namespace dlock::test
