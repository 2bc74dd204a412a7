#include "tests/support/etcd_server.hpp"

#include <poll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <string_view>
#include <system_error>
#include <utility>

#include "tests/support/free_port.hpp"
#include "torture/rig/hang_guard.hpp"
#include "torture/rig/socket.hpp"

namespace dlock::test {

namespace {

constexpr int start_attempts = 10;
// A server that stands still accepts connections, but does not answer.
constexpr std::chrono::milliseconds answer_limit{500};
constexpr std::chrono::milliseconds between_questions{10};
// etcdctl waits for ever without one.
constexpr const char* ctl_limit = "--command-timeout=5s";

// A server that was asked to end does so by the signal.
constexpr int ended_by_request = 128 + SIGTERM;

// A moment, or until the process ends.
void wait_a_moment(const rig::ChildProcess& process) {
  const rig::UniqueFd end(static_cast<int>(::syscall(SYS_pidfd_open, process.pid(), 0)));
  pollfd source{.fd = end.get(), .events = POLLIN, .revents = 0};
  (void)::poll(&source, 1, static_cast<int>(between_questions.count()));
}

EtcdMembership::Ports free_ports() {
  return {.client = free_port(), .peer = free_port(), .metrics = free_port()};
}

std::string at(std::uint16_t port) {
  return "http://127.0.0.1:" + std::to_string(port);
}

std::string name_of(std::size_t member) {
  return "m" + std::to_string(member + 1);
}

// Of a field that has a number for its value.
std::string number_in(const std::string& json, const std::string& field) {
  const std::string start = "\"" + field + "\":";
  const auto found = json.find(start);
  if (found == std::string::npos) throw std::runtime_error("etcdctl says nothing of " + field + ": " + json);
  const auto from = found + start.size();
  return json.substr(from, json.find_first_not_of("0123456789", from) - from);
}

}  // namespace

EtcdServer::EtcdServer(EtcdConfig config) : config_(std::move(config)) {
  if (config_.tls) certificate_ = std::make_shared<ThrowawayCertificate>(config_.tls_names);
  for (int i = 0; i < start_attempts; ++i) {
    membership_ = {.all = {free_ports()}, .own = 0};
    launch();
    while (process_->running()) {
      if (healthy()) {
        set_up_users();
        return;
      }
      wait_a_moment(*process_);
    }
  }
  throw std::runtime_error("etcd does not start\n" + process_->output());
}

EtcdServer::EtcdServer(EtcdConfig config, EtcdMembership membership,
                       std::shared_ptr<const ThrowawayCertificate> certificate)
    : config_(std::move(config)), membership_(std::move(membership)), certificate_(std::move(certificate)) {}

std::string EtcdServer::url_of(const std::string& addresses, const std::string& parameters) const {
  std::string url = config_.tls ? "etcds://" : "etcd://";
  if (config_.user) url += config_.user->name + ":" + config_.user->password + "@";
  std::string all = config_.tls ? "tls_ca=" + certificate_->authority() : "";
  if (config_.client_certificates) {
    all += "&tls_cert=" + certificate_->certificate() + "&tls_key=" + certificate_->key();
  }
  if (!all.empty() && !parameters.empty()) all += "&";
  all += parameters;
  url += addresses;
  return all.empty() ? url : url + "?" + all;
}

std::vector<std::string> EtcdServer::command() const {
  const std::string clients = (config_.tls ? "https" : "http") + at(own().client).substr(4);
  std::string cluster;
  for (std::size_t i = 0; i < membership_.all.size(); ++i) {
    cluster += (cluster.empty() ? "" : ",") + name_of(i) + "=" + at(membership_.all[i].peer);
  }
  // Data of an earlier attempt, on other ports, is of another cluster.
  std::vector<std::string> line = {"etcd",
                                   "--name=" + name_of(membership_.own),
                                   "--data-dir=" + directory_.path() + "/data-" + std::to_string(own().peer),
                                   "--listen-client-urls=" + clients,
                                   "--advertise-client-urls=" + clients,
                                   "--listen-peer-urls=" + at(own().peer),
                                   "--initial-advertise-peer-urls=" + at(own().peer),
                                   "--listen-metrics-urls=" + at(own().metrics),
                                   "--initial-cluster=" + cluster,
                                   "--heartbeat-interval=" + std::to_string(config_.heartbeat.count()),
                                   "--election-timeout=" + std::to_string(config_.election.count()),
                                   "--auth-token-ttl=" + std::to_string(config_.token_ttl.count()),
                                   "--logger=zap",
                                   "--log-level=warn"};
  if (config_.tls) {
    line.insert(line.end(), {"--cert-file=" + certificate_->certificate(), "--key-file=" + certificate_->key()});
  }
  if (config_.client_certificates) {
    line.insert(line.end(), {"--client-cert-auth", "--trusted-ca-file=" + certificate_->authority()});
  }
  if (!config_.log_directory.empty() && membership_.own == 0) {
    line.push_back("--wal-dir=" + config_.log_directory + "/wal-" + std::to_string(own().peer));
  }
  line.insert(line.end(), config_.options.begin(), config_.options.end());
  return line;
}

void EtcdServer::launch() {
  process_ = std::make_unique<rig::ChildProcess>(command());
}

void EtcdServer::await_serving() const {
  const auto give_up = std::chrono::steady_clock::now() + rig::hang_guard;
  while (!healthy()) {
    if (!running()) throw std::runtime_error("etcd ended\n" + process_->output());
    if (std::chrono::steady_clock::now() > give_up) throw std::runtime_error("hang: etcd does not serve");
    wait_a_moment(*process_);
  }
}

void EtcdServer::start() {
  launch();
  await_serving();
}

void EtcdServer::stop() {
  process_->signal(SIGTERM);
  if (const int status = process_->wait(); status != ended_by_request && status != 0) {
    throw std::runtime_error("etcd ended with status " + std::to_string(status) + "\n" + process_->output());
  }
}

void EtcdServer::kill() {
  process_->signal(SIGKILL);
  (void)process_->wait();
}

std::string EtcdServer::get(const std::string& path) const {
  try {
    const rig::UniqueFd connection = rig::connect_to(rig::Endpoint::loopback(own().metrics));
    const timeval limit{.tv_sec = 0, .tv_usec = std::chrono::microseconds(answer_limit).count()};
    rig::require(::setsockopt(connection.get(), SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit)), "SO_RCVTIMEO");
    const std::string request = "GET " + path + " HTTP/1.0\r\n\r\n";
    rig::require(::send(connection.get(), request.data(), request.size(), MSG_NOSIGNAL), "send");
    std::string answer;
    std::array<char, 16384> bytes;
    for (;;) {
      const auto n = rig::require(::recv(connection.get(), bytes.data(), bytes.size(), 0), "recv");
      if (n == 0) break;
      answer.append(bytes.data(), static_cast<std::size_t>(n));
    }
    const auto body = answer.find("\r\n\r\n");
    return answer.starts_with("HTTP/1.0 200") && body != std::string::npos ? answer.substr(body + 4) : "";
  } catch (const std::system_error&) {
    return {};  // it is down, going down, or stands still
  }
}

bool EtcdServer::healthy() const {
  return get("/health").find("\"health\":\"true\"") != std::string::npos;
}

std::optional<double> EtcdServer::figure(const std::string& name, const std::string& label) const {
  const std::string text = "\n" + get("/metrics");
  std::optional<double> sum;
  for (auto at = text.find("\n" + name); at != std::string::npos; at = text.find("\n" + name, at + 1)) {
    const std::string line = text.substr(at + 1, text.find('\n', at + 1) - at - 1);
    const std::string_view rest = std::string_view(line).substr(name.size());
    if (!rest.starts_with(' ') && !rest.starts_with('{')) continue;  // a longer name
    if (rest.find(label) == std::string_view::npos) continue;
    sum = sum.value_or(0) + std::stod(line.substr(line.rfind(' ') + 1));
  }
  return sum;
}

std::int64_t EtcdServer::requests() const {
  const auto received = figure("grpc_server_msg_received_total");
  if (!received) throw std::runtime_error("the metrics say nothing of messages");
  return static_cast<std::int64_t>(*received);
}

std::vector<std::string> EtcdServer::ctl_command(const std::string& addresses,
                                                 const std::vector<std::string>& arguments) const {
  std::vector<std::string> line = {"etcdctl", "--endpoints=" + addresses};
  if (config_.tls) line.insert(line.end(), {"--insecure-transport=false", "--cacert=" + certificate_->authority()});
  if (config_.tls_names != ThrowawayCertificate::usual_names) line.emplace_back("--insecure-skip-tls-verify");
  if (config_.client_certificates) {
    line.insert(line.end(), {"--cert=" + certificate_->certificate(), "--key=" + certificate_->key()});
  }
  if (users_) line.push_back(std::string("--user=root:") + root_password);
  line.insert(line.end(), arguments.begin(), arguments.end());
  return line;
}

// etcdctl tells of each attempt that failed, also where a later one succeeds.
std::string EtcdServer::ctl_at(const std::string& addresses, const std::vector<std::string>& arguments) const {
  const rig::ScratchDirectory scratch;
  const std::string complaints = scratch.path() + "/complaints";
  std::vector<std::string> line = {"sh", "-c", "exec \"$@\" 2>\"$0\"", complaints};
  for (std::string& each : ctl_command(addresses, arguments)) line.push_back(std::move(each));
  line.emplace_back(ctl_limit);
  rig::ChildProcess process(std::move(line), {"ETCDCTL_API=3"});
  process.wait_for_output_end();
  if (const int status = process.wait(); status != 0) {
    std::ifstream file(complaints);
    throw std::runtime_error("etcdctl ended with status " + std::to_string(status) + "\n" +
                             std::string(std::istreambuf_iterator<char>(file), {}));
  }
  return process.output();
}

std::unique_ptr<rig::ChildProcess> EtcdServer::ctl_process(const std::vector<std::string>& arguments) const {
  return std::make_unique<rig::ChildProcess>(ctl_command(address(), arguments),
                                             std::vector<std::string>{"ETCDCTL_API=3"});
}

std::vector<std::string> EtcdServer::keys(const std::string& prefix) const {
  const std::string text = ctl({"get", prefix, "--prefix", "--keys-only"});
  std::vector<std::string> found;
  for (std::size_t from = 0; from < text.size();) {
    const auto end = std::min(text.find('\n', from), text.size());
    if (end > from) found.push_back(text.substr(from, end - from));
    from = end + 1;
  }
  return found;
}

std::int64_t EtcdServer::revision() const {
  return std::stoll(number_in(ctl({"endpoint", "status", "-w", "json"}), "revision"));
}

// The first member does it for the cluster.
void EtcdServer::set_up_users() {
  if (config_.user && membership_.own == 0) {
    const EtcdUser& user = *config_.user;
    (void)ctl({"user", "add", std::string("root:") + root_password});
    (void)ctl({"user", "grant-role", "root", "root"});
    (void)ctl({"role", "add", user.name});
    for (const std::string& each : user.prefixes) {
      (void)ctl({"role", "grant-permission", user.name, "readwrite", each, "--prefix"});
    }
    (void)ctl({"user", "add", user.name + ":" + user.password});
    (void)ctl({"user", "grant-role", user.name, user.name});
    (void)ctl({"auth", "enable"});
  }
  users_ = config_.user.has_value();
}

EtcdCluster::EtcdCluster(const EtcdConfig& config, std::size_t size) {
  if (config.tls) certificate_ = std::make_shared<ThrowawayCertificate>(config.tls_names);
  for (int i = 0; i < start_attempts; ++i) {
    if (!try_to_start(config, size)) continue;
    await_settled();
    for (const auto& each : members_) each->set_up_users();
    return;
  }
  throw std::runtime_error("no cluster comes up\n" + members_.front()->process().output());
}

bool EtcdCluster::try_to_start(const EtcdConfig& config, std::size_t size) {
  members_.clear();
  EtcdMembership membership{.all = {}, .own = 0};
  for (std::size_t i = 0; i < size; ++i) membership.all.push_back(free_ports());
  for (membership.own = 0; membership.own < size; ++membership.own) {
    members_.push_back(std::make_unique<EtcdServer>(config, membership, certificate_));
    members_.back()->launch();
  }
  for (const auto& each : members_) {
    const auto give_up = std::chrono::steady_clock::now() + rig::hang_guard;
    while (!each->healthy()) {
      // Somebody took one of its ports.
      if (!each->running() || std::chrono::steady_clock::now() > give_up) return false;
      wait_a_moment(each->process());
    }
  }
  return true;
}

std::string EtcdCluster::addresses() const {
  std::string list;
  for (const auto& each : members_) list += (list.empty() ? "" : ",") + each->address();
  return list;
}

std::string EtcdCluster::url(const std::string& parameters) const {
  return members_.front()->url_of(addresses(), parameters);
}

// One that was cut off goes on saying that it leads until it notices, but is not healthy.
std::size_t EtcdCluster::leader() const {
  const auto give_up = std::chrono::steady_clock::now() + rig::hang_guard;
  for (;;) {
    for (std::size_t i = 0; i < members_.size(); ++i) {
      if (!members_[i]->running()) continue;
      if (members_[i]->figure("etcd_server_is_leader") == 1 && members_[i]->healthy()) return i;
      wait_a_moment(members_[i]->process());
    }
    if (std::chrono::steady_clock::now() > give_up) throw std::runtime_error("hang: no leader is elected");
  }
}

std::size_t EtcdCluster::follower(std::optional<std::size_t> except) const {
  const std::size_t led_by = leader();
  for (std::size_t i = 0; i < members_.size(); ++i) {
    if (i != led_by && i != except && members_[i]->running()) return i;
  }
  throw std::runtime_error("there is no such follower");
}

void EtcdCluster::move_leader(std::size_t to) const {
  const std::string status = server(to).ctl({"endpoint", "status", "-w", "json"});
  std::array<char, 17> id{};
  (void)std::snprintf(id.data(), id.size(), "%llx", std::stoull(number_in(status, "member_id")));
  (void)server(leader()).ctl({"move-leader", id.data()});
  while (leader() != to) wait_a_moment(server(to).process());
}

void EtcdCluster::await_settled() const {
  for (const auto& each : members_) {
    if (each->running()) each->await_serving();
  }
  (void)leader();
}

void EtcdCluster::start() {
  for (const auto& each : members_) {
    if (!each->running()) each->launch();
  }
  await_settled();
}

void EtcdCluster::stop() {
  for (const auto& each : members_) {
    if (each->running()) each->process().signal(SIGTERM);
  }
  for (const auto& each : members_) {
    if (each->running()) each->stop();
  }
}

}  // namespace dlock::test
