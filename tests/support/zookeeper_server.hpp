// ZooKeeper servers for a test: on free ports of 127.0.0.1, in scratch directories, removed with the object.
//
//   ZooKeeperServer server;                              // standalone
//   Client client = connect(server.url("session_timeout=2s"));
//   server.kill();
//   server.start();                                      // same port, same data
//
//   ZooKeeperEnsemble ensemble;                          // three of them
//   ensemble.server(ensemble.leader()).kill();
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tests/support/ensemble.hpp"
#include "tests/support/server.hpp"

namespace dlock::test {

struct ZooKeeperConfig {
  // The server's unit of time: sessions end at multiples of it, within the bounds below.
  std::chrono::milliseconds tick{100};
  std::chrono::milliseconds min_session{200};
  std::chrono::milliseconds max_session{120'000};
  bool sync_to_disk = false;            // acknowledged data survives a crash of the machine, not only of the server
  bool for_long = false;                // slow to start, fast later: for measurements
  std::vector<std::string> lines = {};  // additional lines for the configuration file
  std::vector<std::string> properties = {};  // of the Java system, "name=value"
};

class ZooKeeperServer final : public Server {
 public:
  // A standalone server.
  explicit ZooKeeperServer(ZooKeeperConfig config = {});
  // A member of an ensemble; not started.
  ZooKeeperServer(ZooKeeperConfig config, Membership membership);

  // Parameters may come after "/chroot".
  [[nodiscard]] std::string url_of(const std::string& addresses, const std::string& parameters) const override;

  [[nodiscard]] bool serves() const override { return !mode().empty(); }
  [[nodiscard]] bool leads() const { return mode() == "leader"; }
  // The answer to a four-letter word; empty if there is none.
  [[nodiscard]] std::string ask(const std::string& word) const { return answer_to(word, port()); }
  // "standalone", "leader", "follower", "read-only"; empty: it does not serve.
  [[nodiscard]] std::string mode() const;
  // A figure of mntr such as "zk_packets_received". Throws std::runtime_error if there is none of that name.
  [[nodiscard]] std::int64_t figure(const std::string& name) const;

 private:
  [[nodiscard]] std::vector<std::string> configure() override;

  ZooKeeperConfig config_;
  std::optional<Membership> membership_;
};

class ZooKeeperEnsemble : public Ensemble<ZooKeeperServer> {
 public:
  // Starts all members and waits until they serve.
  explicit ZooKeeperEnsemble(const ZooKeeperConfig& config = {.tick = std::chrono::milliseconds(200)},
                             std::size_t size = 3);
};

}  // namespace dlock::test
