// ZooKeeper servers of a test's own: on free ports of 127.0.0.1, in scratch directories, gone with the object.
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

#include "torture/rig/child_process.hpp"
#include "torture/rig/scratch_directory.hpp"

namespace dlock::test {

struct ZooKeeperConfig {
  // The server's unit of time: sessions end at multiples of it, within the bounds below.
  std::chrono::milliseconds tick{100};
  std::chrono::milliseconds min_session{200};
  std::chrono::milliseconds max_session{120'000};
  bool sync_to_disk = false;                 // what the server acknowledged survives the machine, not only the server
  bool for_long = false;                     // started slowly, quick later: for measurements
  std::vector<std::string> lines = {};       // more lines for the configuration file
  std::vector<std::string> properties = {};  // of the Java system, "name=value"
};

// The ports of all servers of an ensemble, and which of them one is.
struct ZooKeeperMembership {
  struct Ports {
    std::uint16_t client;
    std::uint16_t quorum;
    std::uint16_t election;
  };
  std::vector<Ports> all;
  std::size_t own;
};

class ZooKeeperServer {
 public:
  // A standalone one: starts it and waits until it serves. Throws std::runtime_error with what it printed if it does
  // not come up.
  explicit ZooKeeperServer(ZooKeeperConfig config = {});
  // One of an ensemble; not started.
  ZooKeeperServer(ZooKeeperConfig config, ZooKeeperMembership membership);
  ZooKeeperServer(const ZooKeeperServer&) = delete;
  ZooKeeperServer& operator=(const ZooKeeperServer&) = delete;

  [[nodiscard]] std::uint16_t port() const noexcept { return port_; }
  // As the C client takes it.
  [[nodiscard]] std::string address() const { return "127.0.0.1:" + std::to_string(port_); }
  // Parameters such as "strategy=ephemeral" may follow, after "/chroot" or alone.
  [[nodiscard]] std::string url(const std::string& parameters = {}) const;

  void stop();   // by SIGTERM
  void kill();   // by SIGKILL
  void start();  // and waits until it serves
  // Starts it only: one of an ensemble does not serve before the others are there.
  void launch();
  void await_serving() const;
  void freeze() const { process_->freeze(); }
  void thaw() const { process_->thaw(); }
  [[nodiscard]] bool running() const { return process_ && process_->running(); }
  [[nodiscard]] const rig::ChildProcess& process() const { return *process_; }

  // The answer to a four-letter word; empty if there is none.
  [[nodiscard]] std::string ask(const std::string& word) const;
  // "standalone", "leader", "follower", "read-only"; empty while it serves nobody.
  [[nodiscard]] std::string mode() const;
  // A figure of mntr such as "zk_packets_received". Throws std::runtime_error if there is none of that name.
  [[nodiscard]] std::int64_t figure(const std::string& name) const;

 private:
  void write_configuration() const;
  [[nodiscard]] std::vector<std::string> command() const;

  ZooKeeperConfig config_;
  std::optional<ZooKeeperMembership> membership_;
  rig::ScratchDirectory directory_;
  std::uint16_t port_ = 0;
  std::unique_ptr<rig::ChildProcess> process_;
};

class ZooKeeperEnsemble {
 public:
  // Starts all and waits until they serve.
  explicit ZooKeeperEnsemble(ZooKeeperConfig config = {.tick = std::chrono::milliseconds(200)}, std::size_t size = 3);

  [[nodiscard]] std::size_t size() const noexcept { return servers_.size(); }
  [[nodiscard]] ZooKeeperServer& server(std::size_t index) const { return *servers_.at(index); }
  // Of all servers, comma-separated.
  [[nodiscard]] std::string addresses() const;
  [[nodiscard]] std::string url(const std::string& parameters = {}) const;

  // The index of the leader; waits for one.
  [[nodiscard]] std::size_t leader() const;
  // The index of a server that is not the leader, and is not `except`.
  [[nodiscard]] std::size_t follower(std::optional<std::size_t> except = std::nullopt) const;
  // Waits until every server that runs serves.
  void await_serving() const;
  // Starts those that do not run, and waits until all serve.
  void start();
  void stop();

 private:
  [[nodiscard]] bool try_to_start(const ZooKeeperConfig& config, std::size_t size);

  std::vector<std::unique_ptr<ZooKeeperServer>> servers_;
};

}  // namespace dlock::test
