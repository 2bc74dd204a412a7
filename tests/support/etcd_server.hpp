// etcd servers for a test: on free ports of 127.0.0.1, in scratch directories, removed with the object.
//
//   EtcdServer server;                                   // one member
//   Client client = connect(server.url("session_ttl=2s"));
//   server.kill();
//   server.start();                                      // same port, same data
//
//   EtcdCluster cluster;                                 // three members
//   cluster.server(cluster.leader()).kill();
//
// etcd always waits for the disk: for which one depends on the temporary directory.
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

// A user with few rights. The defaults are exactly those that the etcd backend needs.
struct EtcdUser {
  std::string name = "locker";
  std::string password = "locker-secret";
  std::vector<std::string> prefixes = {"dlock/", "dlock.rw/", "dlock.sem/", "dlock.elect/"};  // reads and writes there
};

struct EtcdConfig {
  // A member without messages for the election timeout starts an election. One and a half of it, rounded up to whole
  // seconds, is the shortest TTL of a lease: one second here.
  std::chrono::milliseconds heartbeat{50};
  std::chrono::milliseconds election{500};
  bool tls = false;  // for clients
  std::string tls_names = ThrowawayCertificate::usual_names;
  bool client_certificates = false;       // with TLS: clients need a certificate, such as the server's own
  std::optional<EtcdUser> user = {};      // switches authentication on, besides a user root
  std::chrono::seconds token_ttl{300};    // how long the server remembers an idle login
  std::vector<std::string> options = {};  // additional options, "--name=value"
  std::string log_directory = {};         // where the first member writes its log; empty: with its data
};

class EtcdServer final : public Server {
 public:
  static constexpr const char* root_password = "root-secret";

  explicit EtcdServer(EtcdConfig config = {});
  // A member of a cluster; not started.
  EtcdServer(EtcdConfig config, Membership membership, std::shared_ptr<const ThrowawayCertificate> certificate);

  [[nodiscard]] std::string url_of(const std::string& addresses, const std::string& parameters) const override;

  // Whether it serves reads that a majority agrees to.
  [[nodiscard]] bool serves() const override;
  // A leader that was cut off still reports that it leads until it notices, but does not serve.
  [[nodiscard]] bool leads() const { return figure("etcd_server_is_leader") == 1 && serves(); }
  // The sum of a figure of its metrics over all labels that contain the text; nullopt: it does not answer, or has no
  // such figure.
  [[nodiscard]] std::optional<double> figure(const std::string& name, const std::string& label = {}) const;
  // Messages of clients received since the start.
  [[nodiscard]] std::int64_t requests() const;

  // Runs etcdctl, as root if there are users, and returns its standard output. Throws std::runtime_error with its error
  // output if it fails.
  std::string ctl(const std::vector<std::string>& arguments) const;
  // For a command that keeps running, such as "lock": in its own session.
  [[nodiscard]] std::unique_ptr<rig::ChildProcess> ctl_process(const std::vector<std::string>& arguments) const;
  // A number in the answer to "endpoint status".
  [[nodiscard]] std::uint64_t status(const std::string& field) const;
  // The keys with this prefix, in order.
  [[nodiscard]] std::vector<std::string> keys(const std::string& prefix) const;
  // The revision of the last change.
  [[nodiscard]] std::int64_t revision() const { return static_cast<std::int64_t>(status("revision")); }
  // Discards all history before the last change.
  void compact() const { (void)ctl({"compaction", std::to_string(revision())}); }
  // Users and authentication, as configured: once, by each member.
  void set_up_users();

 private:
  void choose_ports() override;
  [[nodiscard]] std::vector<std::string> configure() override;
  [[nodiscard]] std::vector<std::string> ctl_command(const std::vector<std::string>& arguments) const;
  // The body of the answer; empty: there is none, or it reports an error.
  [[nodiscard]] std::string get(const std::string& path) const;

  EtcdConfig config_;
  Membership membership_;
  bool users_ = false;
};

class EtcdCluster : public Ensemble<EtcdServer> {
 public:
  // Starts all members and waits until they serve.
  explicit EtcdCluster(const EtcdConfig& config = {}, std::size_t size = 3);
  // Makes a different member the leader, and waits until it is.
  void move_leader(std::size_t to) const;
};

}  // namespace dlock::test
