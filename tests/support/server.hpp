// The base of the servers that a test starts for itself: on free ports of 127.0.0.1, in a scratch directory, gone with
// the object. A constructor waits until the server serves; it throws std::runtime_error with the server's output if it
// does not.
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
  // As a client reaches it, or a proxy in front of it; with the user's name and password where there is one.
  // Parameters such as "lease=2s" may follow.
  [[nodiscard]] std::string url(const std::string& parameters = {}) const { return url_of(address(), parameters); }
  [[nodiscard]] std::string url_at(std::uint16_t port, const std::string& parameters = {}) const {
    return url_of("127.0.0.1:" + std::to_string(port), parameters);
  }
  // At these addresses, comma-separated. Throws std::logic_error for a server that clients do not name in a URL.
  [[nodiscard]] virtual std::string url_of(const std::string& addresses, const std::string& parameters) const;
  // Of a server with TLS.
  [[nodiscard]] const ThrowawayCertificate& certificate() const { return *certificate_; }
  [[nodiscard]] const std::string& directory() const noexcept { return directory_.path(); }
  [[nodiscard]] const rig::ChildProcess& process() const { return *process_; }
  // False: it has ended or was not started. A frozen one runs, but is not active.
  [[nodiscard]] bool running() const { return process_ && process_->running(); }
  [[nodiscard]] bool active() const { return running() && !process_->frozen(); }
  // Whether it answers clients now.
  [[nodiscard]] virtual bool serves() const = 0;

  // On the same ports, with the same data. Throws std::runtime_error with its output if it does not serve.
  void start();
  // Starts it only: a member of an ensemble does not serve before a majority runs.
  void launch();
  void await_serving() const;
  // Asks it to end, and waits for that. Throws std::runtime_error with its output if it ends with an error.
  void stop();
  virtual void kill();  // by SIGKILL
  virtual void freeze() const { process_->freeze(); }
  virtual void thaw() const { process_->thaw(); }
  // Until the server does something or ends, 10 ms at most.
  void wait_a_moment() const;

 protected:
  // The name is for errors. certificate: of a server with TLS.
  explicit Server(std::string name, std::shared_ptr<const ThrowawayCertificate> certificate = nullptr,
                  int stop_signal = SIGTERM)
      : name_(std::move(name)), certificate_(std::move(certificate)), stop_signal_(stop_signal) {}

  // For constructors. Another program may take a port before the server has it, so it is tried again with others.
  void start_on_free_ports();
  void set_port(std::uint16_t port) noexcept { port_ = port; }
  [[nodiscard]] bool has_printed(const std::string& text) const;

  virtual void choose_ports();
  // Writes the configuration; the command line with which it is started.
  [[nodiscard]] virtual std::vector<std::string> configure() = 0;
  // Ends connections to it that the object keeps.
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

// Throws std::runtime_error if it cannot be written.
void write_file(const std::string& path, const std::string& text);
// Of servers at these ports of this machine, comma-separated.
[[nodiscard]] inline std::string addresses_of(const std::vector<std::uint16_t>& ports) {
  std::string text;
  for (const std::uint16_t port : ports) text += (text.empty() ? "" : ",") + ("127.0.0.1:" + std::to_string(port));
  return text;
}
// With those of the parameters, "a=b&c=d", that are not empty.
[[nodiscard]] std::string with_parameters(std::string url, std::initializer_list<std::string> parameters);
// One for all servers of a service, where it has TLS.
[[nodiscard]] inline std::shared_ptr<const ThrowawayCertificate> certificate_if(bool tls, const std::string& names) {
  return tls ? std::make_shared<const ThrowawayCertificate>(names) : nullptr;
}
// All that the server at this port sends in answer to a request before it closes the connection. Empty: it is down,
// going down, or frozen.
[[nodiscard]] std::string answer_to(const std::string& request, std::uint16_t port);

}  // namespace dlock::test
