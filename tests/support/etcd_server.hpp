// etcd servers of a test's own: on free ports of 127.0.0.1, in scratch directories, gone with the object.
//
//   EtcdServer server;                                   // one member
//   Client client = connect(server.url("session_ttl=2s"));
//   server.kill();
//   server.start();                                      // same port, same data
//
//   EtcdCluster cluster;                                 // three members
//   cluster.server(cluster.leader()).kill();
//
// etcd always waits for the disk: where the temporary directory lies says for which.
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
  // A member that hears nothing for the election timeout seeks a new leader. One and a half of it, rounded up to whole
  // seconds, is the shortest TTL that a lease is granted: one second here.
  std::chrono::milliseconds heartbeat{50};
  std::chrono::milliseconds election{500};
  bool tls = false;  // for clients
  std::string tls_names = ThrowawayCertificate::usual_names;
  bool client_certificates = false;       // with TLS: nobody is served without one, such as the server's own
  std::optional<EtcdUser> user = {};      // switches authentication on, with a user root besides
  std::chrono::seconds token_ttl{300};    // how long the server remembers an idle login
  std::vector<std::string> options = {};  // more of them, "--name=value"
  std::string log_directory = {};         // where the first member writes its log, if not with its data
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
  // A leader that was cut off goes on saying that it leads until it notices, but does not serve.
  [[nodiscard]] bool leads() const { return figure("etcd_server_is_leader") == 1 && serves(); }
  // The sum of a figure of its metrics over all labels that contain the text; absent: it does not answer, or has no
  // such figure.
  [[nodiscard]] std::optional<double> figure(const std::string& name, const std::string& label = {}) const;
  // Messages of clients that it has received since it was started.
  [[nodiscard]] std::int64_t requests() const;

  // What etcdctl prints to standard output, as root where there are users. Throws std::runtime_error with what it says
  // if it fails.
  std::string ctl(const std::vector<std::string>& arguments) const;
  // One that goes on, such as "lock": in a session of its own.
  [[nodiscard]] std::unique_ptr<rig::ChildProcess> ctl_process(const std::vector<std::string>& arguments) const;
  // A number in the answer to "endpoint status".
  [[nodiscard]] std::uint64_t status(const std::string& field) const;
  // Those that begin so, in order.
  [[nodiscard]] std::vector<std::string> keys(const std::string& prefix) const;
  // Of the last change.
  [[nodiscard]] std::int64_t revision() const { return static_cast<std::int64_t>(status("revision")); }
  // Makes it forget all history before its last change.
  void compact() const { (void)ctl({"compaction", std::to_string(revision())}); }
  // Users and authentication, as configured: once, by each member.
  void set_up_users();

 private:
  void choose_ports() override;
  [[nodiscard]] std::vector<std::string> configure() override;
  [[nodiscard]] std::vector<std::string> ctl_command(const std::vector<std::string>& arguments) const;
  // The body of the answer; empty: there is none, or it says that something is wrong.
  [[nodiscard]] std::string get(const std::string& path) const;

  EtcdConfig config_;
  Membership membership_;
  bool users_ = false;
};

class EtcdCluster : public Ensemble<EtcdServer> {
 public:
  // Starts all and waits until they serve.
  explicit EtcdCluster(const EtcdConfig& config = {}, std::size_t size = 3);
  // Makes another member the leader, and waits until it is.
  void move_leader(std::size_t to) const;
};

}  // namespace dlock::test
