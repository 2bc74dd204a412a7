// ZooKeeper as the rooms have it: a standalone server.
#include <limits>

#include "network/room.hpp"
#include "zookeeper/zookeeper_test.hpp"

namespace dlock::test {

namespace {

using Answer = ScriptedServer::Answer;

class ZooKeeperService final : public Service {
 public:
  [[nodiscard]] std::uint16_t port() const override { return server_.port(); }
  [[nodiscard]] std::string url_at(std::uint16_t port, const std::string& parameters) const override {
    return "zookeeper://127.0.0.1:" + std::to_string(port) + "?" + parameters;
  }
  // It has no passwords, but nodes that are somebody's.
  [[nodiscard]] std::string url_of_stranger(const std::string& password, const std::string& parameters) override {
    ZooKeeperClient owner(server_.address(), "owner:secret");
    owner.create("/theirs", {}, ZooKeeperClient::Kind::persistent, ZooKeeperClient::Access::creator);
    return url_at(port(), parameters + "&prefix=/theirs&auth=digest:mallory:" + password);
  }
  void stop() override { server_.stop(); }
  void kill() override { server_.kill(); }
  void start() override { server_.start(); }
  void freeze() override { server_.freeze(); }
  void thaw() override { server_.thaw(); }
  void clear() override {
    (void)tree_.zk.remove("/theirs");  // which nobody else may list
    tree_.remove_all();
  }
  [[nodiscard]] std::size_t residue(const std::string& /*strategy*/, const std::string& name) override {
    return tree_.residue(name);
  }
  [[nodiscard]] bool remembers(const std::string& /*strategy*/, const std::string& name) override {
    return tree_.zk.get(Tree::path(name)).has_value();
  }
  [[nodiscard]] bool has_waiter(const std::string& strategy, const std::string& name) override {
    return strategy == "ephemeral" || tree_.residue(name) > 1;
  }

 private:
  ZooKeeperServer server_;
  Tree tree_{server_.address()};
};

std::string number(std::uint64_t value, int bytes) {
  std::string text;
  for (int shift = 8 * (bytes - 1); shift >= 0; shift -= 8) text += static_cast<char>(value >> shift & 0xffU);
  return text;
}

std::string frame(const std::string& content) {
  return number(content.size(), 4) + content;
}

// The answer to a request: its number, a transaction, an error, and what follows.
std::string reply(std::uint32_t xid, std::uint32_t error, const std::string& content = {}) {
  return frame(number(xid, 4) + number(1, 8) + number(error, 4) + content);
}

// A session of 10 s.
std::string welcome() {
  return frame(number(0, 4) + number(10'000, 4) + number(4711, 8) + number(16, 4) + std::string(16, 'p') + '\0');
}

// A client asks for a session first: protocol 0, transaction 0.
bool asks_for_session(const std::string& received) {
  return received.size() >= 44 && received.substr(4, 12) == std::string(12, '\0');
}

ScriptedServer::Script polite_until_asked(Answer answer) {
  return [answer = std::move(answer)](const std::string& received) {
    if (received.empty()) return Answer{};
    return asks_for_session(received) ? Answer{.bytes = welcome()} : answer;
  };
}

}  // namespace

const ServiceKind& service_kind() {
  static const ServiceKind kind{
      .name = "zookeeper",
      .strategies = {"sequential", "ephemeral"},
      .variants = {"sequential-herd"},
      .start = [](const std::string& /*tls_names*/) { return std::make_unique<ZooKeeperService>(); },
      // The longer a session, the longer the client library waits before it tries a server again (a sixtieth of it).
      .long_lease = 60s,
      .connect_timeout = 2s,
      .has_tls = false,
      .hostile_url = [](std::uint16_t port) { return "zookeeper://127.0.0.1:" + std::to_string(port) + "?"; },
      .polite_until_asked = polite_until_asked,
      .hostilities =
          {
              {"giant_length", {.bytes = number(0x7fffffff, 4) + std::string(65536, 'x')}},
              {"half_a_reply", {.bytes = number(100, 4) + "x"}},
              {"half_a_reply_and_end", {.bytes = number(100, 4) + "x", .close = true}},
              {"number_that_nobody_asked_by", {.bytes = reply(0x7ffffff0, 0, "x")}},
          },
      // Up to the client library, which believes the lengths that a server names: docs/security.md.
      .most_accepted = std::numeric_limits<std::uint32_t>::max(),
  };
  return kind;
}

}  // namespace dlock::test
