// The base of servers started for a test: on free ports of 127.0.0.1, in a scratch directory, stopped and removed with
// the object. A constructor waits until the server serves; otherwise it throws std::runtime_error with the server's
// output.
#pragma once

#include <csignal>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/throwaway_certificate.hpp"
#include "torture/rig/child_process.hpp"
#include "torture/rig/scratch_directory.hpp"

namespace dlock::test {

class Server {
 public:
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;
  virtual ~Server() = default;

  [[nodiscard]] std::uint16_t port() const noexcept { return port_; }
  [[nodiscard]] std::string address() const { return "127.0.0.1:" + std::to_string(port_); }
  // For a client; with the user's name and password, if there is a user. Parameters such as "lease=2s" may follow.
  [[nodiscard]] std::string url(const std::string& parameters = {}) const { return url_of(address(), parameters); }
  [[nodiscard]] std::string url_at(std::uint16_t port, const std::string& parameters = {}) const {
    return url_of("127.0.0.1:" + std::to_string(port), parameters);
  }
  // With these addresses, comma-separated. Throws std::logic_error if clients do not name the server in a URL.
  [[nodiscard]] virtual std::string url_of(const std::string& addresses, const std::string& parameters) const;
  // The URL of a server with users, for a different user.
  [[nodiscard]] std::string url_as(const std::string& user, const std::string& password,
                                   const std::string& parameters = {}) const;
  // Of a server with TLS.
  [[nodiscard]] const ThrowawayCertificate& certificate() const { return *certificate_; }
  [[nodiscard]] const std::string& directory() const noexcept { return directory_.path(); }
  [[nodiscard]] const rig::ChildProcess& process() const { return *process_; }
  // False: it has ended or was not started. A frozen server counts as running.
  [[nodiscard]] bool running() const { return process_ && process_->running(); }
  [[nodiscard]] bool active() const { return running() && !process_->frozen(); }
  // Whether it answers clients now.
  [[nodiscard]] virtual bool serves() const = 0;

  // On the same ports, with the same data. Throws std::runtime_error with its output if it does not serve.
  void start();
  // Does not wait until it serves: a member of an ensemble does not before a majority runs.
  void launch();
  void await_serving() const;
  // Sends SIGTERM, and waits for the end. Throws std::runtime_error with its output if it ends with an error.
  void stop();
  virtual void kill();  // by SIGKILL
  virtual void freeze() const { process_->freeze(); }
  virtual void thaw() const { process_->thaw(); }
  // Waits until the server prints something or ends, 10 ms at most.
  void wait_a_moment() const;

 protected:
  // name: for errors. certificate: of a server with TLS.
  explicit Server(std::string name, std::shared_ptr<const ThrowawayCertificate> certificate = nullptr,
                  int stop_signal = SIGTERM)
      : name_(std::move(name)), certificate_(std::move(certificate)), stop_signal_(stop_signal) {}

  // For constructors. If another program takes a port before the server does, different ports are tried.
  void start_on_free_ports();
  void set_port(std::uint16_t port) noexcept { port_ = port; }
  [[nodiscard]] bool has_printed(const std::string& text) const;

  virtual void choose_ports();
  // Writes the configuration; returns the server's command line.
  [[nodiscard]] virtual std::vector<std::string> configure() = 0;
  // Closes the object's own connections to it.
  virtual void disconnect() {}

 private:
  [[nodiscard]] bool comes_up() const;

  const std::string name_;
  const std::shared_ptr<const ThrowawayCertificate> certificate_;
  const int stop_signal_;
  rig::ScratchDirectory directory_;
  std::uint16_t port_ = 0;
  std::unique_ptr<rig::ChildProcess> process_;
};

// The user for whom servers run that refuse to run as root, if the tests do. Otherwise everything stays the tests' own.
struct Account {
  const char* name;

  // The command, run for that user. It ends with the thread that started it, as any ChildProcess does.
  [[nodiscard]] std::vector<std::string> command(std::vector<std::string> words) const;
  void give(const std::string& path) const;
  void write_file(const std::string& path, const std::string& text) const;
};

class UnprivilegedServer : public Server {
 public:
  // The server uses the new one once it is started again.
  void renew_certificate() const {
    certificate().renew();
    copy_certificate();
  }

 protected:
  template <class... Arguments>
  explicit UnprivilegedServer(const Account& account, Arguments&&... arguments)
      : Server(std::forward<Arguments>(arguments)...), account_(account) {
    account_.give(directory());
  }
  // To server.crt and server.key in its directory.
  void copy_certificate() const;
  [[nodiscard]] std::string data() const { return directory() + "/data"; }
  void copy_data(const std::string& from) const;

 private:
  const Account account_;
};

// Throws std::runtime_error if it cannot be written.
void write_file(const std::string& path, const std::string& text);
// Of pointers to servers.
template <class Servers>
[[nodiscard]] std::vector<std::uint16_t> ports_of(const Servers& servers) {
  std::vector<std::uint16_t> ports;
  for (const auto& each : servers) ports.push_back(each->port());
  return ports;
}
// The addresses of servers at these ports of this machine, comma-separated.
[[nodiscard]] inline std::string addresses_of(const std::vector<std::uint16_t>& ports) {
  std::string text;
  for (const std::uint16_t port : ports) text += (text.empty() ? "" : ",") + ("127.0.0.1:" + std::to_string(port));
  return text;
}
// The URL with those of the parameters, "a=b&c=d", that are not empty.
[[nodiscard]] std::string with_parameters(std::string url, std::initializer_list<std::string> parameters);
// One certificate for all servers of a service with TLS; otherwise nullptr.
[[nodiscard]] inline std::shared_ptr<const ThrowawayCertificate> certificate_if(bool tls, const std::string& names) {
  return tls ? std::make_shared<const ThrowawayCertificate>(names) : nullptr;
}
// Everything that the server at this port sends in answer to a request until it closes the connection. Empty: it is
// down, stopping, or frozen.
[[nodiscard]] std::string answer_to(const std::string& request, std::uint16_t port);

}  // namespace dlock::test
