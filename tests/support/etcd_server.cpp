#include "tests/support/etcd_server.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <string_view>
#include <utility>

namespace dlock::test {
namespace {

// Without a limit, etcdctl waits for ever.
constexpr const char* ctl_limit = "--command-timeout=5s";

std::string at(std::uint16_t port) {
  return "http://127.0.0.1:" + std::to_string(port);
}

std::string name_of(std::size_t member) {
  return "m" + std::to_string(member + 1);
}

}  // namespace

EtcdServer::EtcdServer(EtcdConfig config)
    : Server("etcd", certificate_if(config.tls, config.tls_names)), config_(std::move(config)) {
  start_on_free_ports();
  set_up_users();
}

EtcdServer::EtcdServer(EtcdConfig config, Membership membership,
                       std::shared_ptr<const ThrowawayCertificate> certificate)
    : Server("etcd", std::move(certificate)), config_(std::move(config)), membership_(std::move(membership)) {
  set_port(membership_.ports().client);
}

void EtcdServer::choose_ports() {
  membership_ = {};
  set_port(membership_.ports().client);
}

std::string EtcdServer::url_of(const std::string& addresses, const std::string& parameters) const {
  std::string url = config_.tls ? "etcds://" : "etcd://";
  if (config_.user) url += config_.user->name + ":" + config_.user->password + "@";
  const std::string own =
      config_.client_certificates ? "tls_cert=" + certificate().certificate() + "&tls_key=" + certificate().key() : "";
  return with_parameters(url + addresses, {config_.tls ? "tls_ca=" + certificate().authority() : "", own, parameters});
}

std::vector<std::string> EtcdServer::configure() {
  const Membership::Ports& own = membership_.ports();
  const std::string clients = (config_.tls ? "https" : "http") + at(own.client).substr(4);
  std::string cluster;
  for (std::size_t i = 0; i < membership_.all.size(); ++i) {
    cluster += (cluster.empty() ? "" : ",") + name_of(i) + "=" + at(membership_.all[i].peer);
  }
  // Data of an earlier attempt, with different ports, belongs to a different cluster.
  std::vector<std::string> line = {"etcd",
                                   "--name=" + name_of(membership_.own),
                                   "--data-dir=" + directory() + "/data-" + std::to_string(own.peer),
                                   "--listen-client-urls=" + clients,
                                   "--advertise-client-urls=" + clients,
                                   "--listen-peer-urls=" + at(own.peer),
                                   "--initial-advertise-peer-urls=" + at(own.peer),
                                   "--listen-metrics-urls=" + at(own.other),
                                   "--initial-cluster=" + cluster,
                                   "--heartbeat-interval=" + std::to_string(config_.heartbeat.count()),
                                   "--election-timeout=" + std::to_string(config_.election.count()),
                                   "--auth-token-ttl=" + std::to_string(config_.token_ttl.count()),
                                   "--logger=zap",
                                   "--log-level=warn"};
  if (config_.tls) {
    line.insert(line.end(), {"--cert-file=" + certificate().certificate(), "--key-file=" + certificate().key()});
  }
  if (config_.client_certificates) {
    line.insert(line.end(), {"--client-cert-auth", "--trusted-ca-file=" + certificate().authority()});
  }
  if (!config_.log_directory.empty() && membership_.own == 0) {
    line.push_back("--wal-dir=" + config_.log_directory + "/wal-" + std::to_string(own.peer));
  }
  line.insert(line.end(), config_.options.begin(), config_.options.end());
  return line;
}

std::string EtcdServer::get(const std::string& path) const {
  const std::string answer = answer_to("GET " + path + " HTTP/1.0\r\n\r\n", membership_.ports().other);
  const auto body = answer.find("\r\n\r\n");
  return answer.starts_with("HTTP/1.0 200") && body != std::string::npos ? answer.substr(body + 4) : "";
}

bool EtcdServer::serves() const {
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

std::vector<std::string> EtcdServer::ctl_command(const std::vector<std::string>& arguments) const {
  std::vector<std::string> line = {"etcdctl", "--endpoints=" + address()};
  if (config_.tls) line.insert(line.end(), {"--insecure-transport=false", "--cacert=" + certificate().authority()});
  if (config_.tls_names != ThrowawayCertificate::usual_names) line.emplace_back("--insecure-skip-tls-verify");
  if (config_.client_certificates) {
    line.insert(line.end(), {"--cert=" + certificate().certificate(), "--key=" + certificate().key()});
  }
  if (users_) line.push_back(std::string("--user=root:") + root_password);
  line.insert(line.end(), arguments.begin(), arguments.end());
  return line;
}

// etcdctl reports each failed attempt, even if a later one succeeds.
std::string EtcdServer::ctl(const std::vector<std::string>& arguments) const {
  const rig::ScratchDirectory scratch;
  const std::string complaints = scratch.path() + "/complaints";
  std::vector<std::string> line = {"sh", "-c", "exec \"$@\" 2>\"$0\"", complaints};
  for (std::string& each : ctl_command(arguments)) line.push_back(std::move(each));
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
  return std::make_unique<rig::ChildProcess>(ctl_command(arguments), std::vector<std::string>{"ETCDCTL_API=3"});
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

std::uint64_t EtcdServer::status(const std::string& field) const {
  const std::string json = ctl({"endpoint", "status", "-w", "json"});
  const std::string start = "\"" + field + "\":";
  const auto found = json.find(start);
  if (found == std::string::npos) throw std::runtime_error("etcdctl says nothing of " + field + ": " + json);
  return std::stoull(json.substr(found + start.size()));
}

// The first member sets them up for the cluster.
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

EtcdCluster::EtcdCluster(const EtcdConfig& config, std::size_t size)
    : Ensemble(size, [&, certificate = certificate_if(config.tls, config.tls_names)](const Membership& membership) {
        return std::make_unique<EtcdServer>(config, membership, certificate);
      }) {
  for (std::size_t i = 0; i < size; ++i) server(i).set_up_users();
}

void EtcdCluster::move_leader(std::size_t to) const {
  std::array<char, 16> id{};
  const auto end = std::to_chars(id.data(), id.data() + id.size(), server(to).status("member_id"), 16).ptr;
  (void)server(leader()).ctl({"move-leader", std::string(id.data(), end)});
  while (leader() != to) server(to).wait_a_moment();
}

}  // namespace dlock::test
