#include "tests/support/server.hpp"

#include <pwd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <system_error>

#include "tests/support/free_port.hpp"
#include "torture/rig/hang_guard.hpp"
#include "torture/rig/socket.hpp"

namespace dlock::test {
namespace {

constexpr int start_attempts = 10;
constexpr int ended_by_request = 128 + SIGTERM;  // as Java and etcd say it
constexpr std::chrono::milliseconds between_questions{10};
// A frozen server accepts connections, but does not answer.
constexpr timeval answer_limit{.tv_sec = 0, .tv_usec = 500'000};

std::pair<uid_t, gid_t> ids_of(const std::string& user) {
  passwd entry{};
  passwd* found = nullptr;
  std::array<char, 4096> buffer{};
  if (::getpwnam_r(user.c_str(), &entry, buffer.data(), buffer.size(), &found) != 0 || found == nullptr) {
    throw std::runtime_error("there is no user " + user);
  }
  return {entry.pw_uid, entry.pw_gid};
}

}  // namespace

std::string Server::url_of(const std::string& /*addresses*/, const std::string& /*parameters*/) const {
  throw std::logic_error(name_ + " has no URL");
}

std::string Server::url_as(const std::string& user, const std::string& password, const std::string& parameters) const {
  const std::string whole = url(parameters);
  return whole.substr(0, whole.find("://") + 3) + user + ":" + password + whole.substr(whole.find('@'));
}

void Server::choose_ports() {
  port_ = free_port();
}

void Server::start_on_free_ports() {
  for (int i = 0; i < start_attempts; ++i) {
    choose_ports();
    launch();
    if (comes_up()) return;
  }
  throw std::runtime_error(name_ + " does not start\n" + process_->output());
}

void Server::launch() {
  process_ = std::make_unique<rig::ChildProcess>(configure());
}

void Server::start() {
  launch();
  await_serving();
}

void Server::wait_a_moment() const {
  const std::size_t seen = process_->output().size();
  (void)process_->wait_until([=](const std::string& output) { return output.size() > seen; }, between_questions);
}

bool Server::comes_up() const {
  const auto give_up = std::chrono::steady_clock::now() + rig::hang_guard;
  while (running() && std::chrono::steady_clock::now() < give_up) {
    if (serves()) return true;
    wait_a_moment();
  }
  return false;
}

void Server::await_serving() const {
  if (!comes_up()) throw std::runtime_error(name_ + " does not serve\n" + process_->output());
}

bool Server::has_printed(const std::string& text) const {
  return process_->output().find(text) != std::string::npos;
}

void Server::stop() {
  disconnect();
  process_->signal(stop_signal_);
  if (const int status = process_->wait(); status != 0 && status != ended_by_request) {
    throw std::runtime_error(name_ + " ended with status " + std::to_string(status) + "\n" + process_->output());
  }
}

void Server::kill() {
  disconnect();
  process_->signal(SIGKILL);
  (void)process_->wait();
}

std::vector<std::string> Account::command(std::vector<std::string> words) const {
  if (::geteuid() != 0) return words;
  // A change of user resets the signal for the parent's end, so setpriv sets it again.
  const auto [user, group] = ids_of(name);
  words.insert(words.begin(), {"setpriv", "--reuid=" + std::to_string(user), "--regid=" + std::to_string(group),
                               "--clear-groups", "--pdeathsig=KILL", "--"});
  return words;
}

void Account::give(const std::string& path) const {
  if (::geteuid() != 0) return;
  const auto [user, group] = ids_of(name);
  rig::require(::chown(path.c_str(), user, group), "chown " + path);
}

void Account::write_file(const std::string& path, const std::string& text) const {
  test::write_file(path, text);
  give(path);
}

void UnprivilegedServer::copy_certificate() const {
  for (const auto& [from, to] :
       {std::pair{certificate().certificate(), "/server.crt"}, std::pair{certificate().key(), "/server.key"}}) {
    const std::string path = directory() + to;
    std::filesystem::copy_file(from, path, std::filesystem::copy_options::overwrite_existing);
    rig::require(::chmod(path.c_str(), S_IRUSR | S_IWUSR), "chmod");
    account_.give(path);
  }
}

void UnprivilegedServer::copy_data(const std::string& from) const {
  (void)rig::run_command(account_.command({"cp", "-a", "--reflink=auto", from, data()}));
}

void write_file(const std::string& path, const std::string& text) {
  std::ofstream file(path, std::ios::trunc);
  file << text;
  if (!file.flush()) throw std::runtime_error("cannot write " + path);
}

std::string with_parameters(std::string url, std::initializer_list<std::string> parameters) {
  char separator = '?';
  for (const std::string& each : parameters) {
    if (each.empty()) continue;
    url += separator + each;
    separator = '&';
  }
  return url;
}

std::string answer_to(const std::string& request, std::uint16_t port) {
  try {
    const rig::UniqueFd connection = rig::connect_to(rig::Endpoint::loopback(port));
    rig::require(::setsockopt(connection.get(), SOL_SOCKET, SO_RCVTIMEO, &answer_limit, sizeof(answer_limit)),
                 "SO_RCVTIMEO");
    rig::require(::send(connection.get(), request.data(), request.size(), MSG_NOSIGNAL), "send");
    std::string answer;
    std::array<char, 16384> bytes;
    for (;;) {
      const auto n = rig::require(::recv(connection.get(), bytes.data(), bytes.size(), 0), "recv");
      if (n == 0) return answer;
      answer.append(bytes.data(), static_cast<std::size_t>(n));
    }
  } catch (const std::system_error&) {
    return {};
  }
}

ThrowawayCertificate::ThrowawayCertificate(const std::string& names) : names_(names) {
  renew();
}

void ThrowawayCertificate::renew() const {
  const std::string ca_key = directory_.path() + "/ca.key";
  const std::string request = directory_.path() + "/server.csr";
  const std::vector<std::string> new_key = {"-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"};
  const auto run = [&](std::vector<std::string> command, bool with_key) {
    if (with_key) command.insert(command.end(), new_key.begin(), new_key.end());
    (void)rig::run_command(std::move(command));
  };
  run({"openssl", "req", "-x509", "-subj", "/CN=dlock test authority", "-days", "2", "-keyout", ca_key, "-out",
       authority()},
      true);
  run({"openssl", "req", "-subj", std::string("/CN=") + usual_owner, "-addext", "subjectAltName=" + names_, "-keyout",
       key(), "-out", request},
      true);
  run({"openssl", "x509", "-req", "-in", request, "-CA", authority(), "-CAkey", ca_key, "-CAcreateserial", "-days", "2",
       "-copy_extensions", "copyall", "-out", certificate()},
      false);
}

}  // namespace dlock::test
