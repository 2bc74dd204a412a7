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

#include "tests/support/throwaway_certificate.hpp"
#include "torture/rig/child_process.hpp"
#include "torture/rig/scratch_directory.hpp"

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
  bool client_certificates = false;       // with TLS: nobody is served without one
  std::optional<EtcdUser> user = {};      // switches authentication on, with a user root besides
  std::chrono::seconds token_ttl{300};    // how long the server remembers an idle login
  std::vector<std::string> options = {};  // more of them, "--name=value"
  std::string log_directory = {};         // where the first member writes its log, if not with its data
};

// The ports of all members of a cluster, and which of them one is.
struct EtcdMembership {
  struct Ports {
    std::uint16_t client;
    std::uint16_t peer;
    std::uint16_t metrics;  // and health: by HTTP without TLS, for anybody
  };
  std::vector<Ports> all;
  std::size_t own;
};

class EtcdServer {
 public:
  static constexpr const char* root_password = "root-secret";

  // Starts it and waits until it serves. Throws std::runtime_error with what it printed if it does not come up.
  explicit EtcdServer(EtcdConfig config = {});
  // A member of a cluster; not started.
  EtcdServer(EtcdConfig config, EtcdMembership membership, std::shared_ptr<const ThrowawayCertificate> certificate);
  EtcdServer(const EtcdServer&) = delete;
  EtcdServer& operator=(const EtcdServer&) = delete;

  [[nodiscard]] std::uint16_t port() const noexcept { return own().client; }
  [[nodiscard]] std::string address() const { return "127.0.0.1:" + std::to_string(port()); }
  // Also the clients', where the server demands one of them.
  [[nodiscard]] const ThrowawayCertificate& certificate() const { return *certificate_; }
  // As a client reaches it, or a proxy in front of it; with the user's name and password where there is one.
  // Parameters such as "session_ttl=2s" may follow.
  [[nodiscard]] std::string url(const std::string& parameters = {}) const { return url_at(port(), parameters); }
  [[nodiscard]] std::string url_at(std::uint16_t port, const std::string& parameters = {}) const {
    return url_of("127.0.0.1:" + std::to_string(port), parameters);
  }
  // At these addresses, comma-separated.
  [[nodiscard]] std::string url_of(const std::string& addresses, const std::string& parameters = {}) const;

  void stop();   // by SIGTERM: a leader hands over before
  void kill();   // by SIGKILL
  void start();  // and waits until it serves
  // Starts it only: a member does not serve before a majority is there.
  void launch();
  void await_serving() const;
  void freeze() const { process_->freeze(); }
  void thaw() const { process_->thaw(); }
  [[nodiscard]] bool running() const { return process_ && process_->running(); }
  [[nodiscard]] const rig::ChildProcess& process() const { return *process_; }

  // Whether it serves reads that a majority agrees to.
  [[nodiscard]] bool healthy() const;
  // The sum of a figure of its metrics over all labels that contain the text; absent: it does not answer, or has no
  // such figure.
  [[nodiscard]] std::optional<double> figure(const std::string& name, const std::string& label = {}) const;
  // Messages of clients that it has received since it was started.
  [[nodiscard]] std::int64_t requests() const;

  // What etcdctl prints to standard output, as root where there are users. Throws std::runtime_error with what it says
  // if it fails.
  std::string ctl(const std::vector<std::string>& arguments) const { return ctl_at(address(), arguments); }
  std::string ctl_at(const std::string& addresses, const std::vector<std::string>& arguments) const;
  // One that goes on, such as "lock": in a session of its own.
  [[nodiscard]] std::unique_ptr<rig::ChildProcess> ctl_process(const std::vector<std::string>& arguments) const;
  // Those that begin so, in order.
  [[nodiscard]] std::vector<std::string> keys(const std::string& prefix) const;
  // Of the last change.
  [[nodiscard]] std::int64_t revision() const;
  // Makes it forget all history before its last change.
  void compact() const { (void)ctl({"compaction", std::to_string(revision())}); }
  // Users and authentication, as configured: once, by each member.
  void set_up_users();

 private:
  [[nodiscard]] const EtcdMembership::Ports& own() const { return membership_.all[membership_.own]; }
  [[nodiscard]] std::vector<std::string> command() const;
  [[nodiscard]] std::vector<std::string> ctl_command(const std::string& addresses,
                                                     const std::vector<std::string>& arguments) const;
  // The body of the answer; empty: there is none, or it says that something is wrong.
  [[nodiscard]] std::string get(const std::string& path) const;

  EtcdConfig config_;
  EtcdMembership membership_;
  std::shared_ptr<const ThrowawayCertificate> certificate_;
  rig::ScratchDirectory directory_;
  bool users_ = false;
  std::unique_ptr<rig::ChildProcess> process_;
};

class EtcdCluster {
 public:
  // Starts all and waits until they serve.
  explicit EtcdCluster(const EtcdConfig& config = {}, std::size_t size = 3);

  [[nodiscard]] std::size_t size() const noexcept { return members_.size(); }
  [[nodiscard]] EtcdServer& server(std::size_t index) const { return *members_.at(index); }
  // Of all members, comma-separated.
  [[nodiscard]] std::string addresses() const;
  [[nodiscard]] std::string url(const std::string& parameters = {}) const;

  // The index of the leader; waits for one that a majority follows.
  [[nodiscard]] std::size_t leader() const;
  // The index of a member that runs and is not the leader, and is not `except`.
  [[nodiscard]] std::size_t follower(std::optional<std::size_t> except = std::nullopt) const;
  // Makes another member the leader, and waits until it is.
  void move_leader(std::size_t to) const;
  // Waits until every member that runs serves, and one of them leads.
  void await_settled() const;
  // Starts those that do not run, and waits until all serve.
  void start();
  void stop();

 private:
  [[nodiscard]] bool try_to_start(const EtcdConfig& config, std::size_t size);

  std::shared_ptr<const ThrowawayCertificate> certificate_;
  std::vector<std::unique_ptr<EtcdServer>> members_;
};

}  // namespace dlock::test
