#include "tests/support/zookeeper_server.hpp"

#include <poll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <charconv>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <functional>
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
constexpr const char* words = "srvr,mntr,ruok,cons,wchs,srst,dump,stat,conf,isro";

// Where Debian puts it; what it needs besides is named in the archive itself.
constexpr const char* class_path = "/usr/share/java/zookeeper.jar";
constexpr const char* standalone_class = "org.apache.zookeeper.server.ZooKeeperServerMain";
constexpr const char* member_class = "org.apache.zookeeper.server.quorum.QuorumPeerMain";

// How Java says that it ended by SIGTERM.
constexpr int ended_by_request = 128 + SIGTERM;

// A moment, or until the process ends.
void wait_a_moment(const rig::ChildProcess& process) {
  const rig::UniqueFd end(static_cast<int>(::syscall(SYS_pidfd_open, process.pid(), 0)));
  pollfd source{.fd = end.get(), .events = POLLIN, .revents = 0};
  (void)::poll(&source, 1, static_cast<int>(between_questions.count()));
}

std::string address_list(const std::vector<std::unique_ptr<ZooKeeperServer>>& servers) {
  std::string list;
  for (const auto& each : servers) list += (list.empty() ? "" : ",") + each->address();
  return list;
}

std::string url_of(const std::string& addresses, const std::string& parameters) {
  if (parameters.empty() || parameters.front() == '/') return "zookeeper://" + addresses + parameters;
  return "zookeeper://" + addresses + "?" + parameters;
}

}  // namespace

ZooKeeperServer::ZooKeeperServer(ZooKeeperConfig config) : config_(std::move(config)) {
  for (int i = 0; i < start_attempts; ++i) {
    port_ = free_port();
    launch();
    while (process_->running()) {
      if (!mode().empty()) return;
      wait_a_moment(*process_);
    }
  }
  throw std::runtime_error("ZooKeeper does not start\n" + process_->output());
}

ZooKeeperServer::ZooKeeperServer(ZooKeeperConfig config, ZooKeeperMembership membership)
    : config_(std::move(config)),
      membership_(std::move(membership)),
      port_(membership_->all[membership_->own].client) {}

std::string ZooKeeperServer::url(const std::string& parameters) const {
  return url_of(address(), parameters);
}

void ZooKeeperServer::write_configuration() const {
  const std::string data = directory_.path() + "/data";
  std::filesystem::create_directories(data);
  std::ofstream file(directory_.path() + "/zoo.cfg");
  file << "dataDir=" << data << "\nclientPort=" << port_ << "\nclientPortAddress=127.0.0.1\n"
       << "tickTime=" << config_.tick.count() << "\nminSessionTimeout=" << config_.min_session.count()
       << "\nmaxSessionTimeout=" << config_.max_session.count() << "\nmaxClientCnxns=0\nadmin.enableServer=false\n"
       << "4lw.commands.whitelist=" << words << "\n";
  if (membership_) {
    file << "initLimit=100\nsyncLimit=20\nstandaloneEnabled=false\n";
    std::size_t number = 0;
    for (const auto& each : membership_->all) {
      file << "server." << ++number << "=127.0.0.1:" << each.quorum << ":" << each.election << "\n";
    }
    std::ofstream(data + "/myid") << membership_->own + 1 << "\n";
  }
  for (const std::string& line : config_.lines) file << line << "\n";
  if (!file.flush()) throw std::runtime_error("cannot write " + directory_.path() + "/zoo.cfg");
}

std::vector<std::string> ZooKeeperServer::command() const {
  std::vector<std::string> line = {"java",
                                   "-Xshare:auto",
                                   "-XX:+UseSerialGC",
                                   "-XX:-UsePerfData",
                                   "-Dzookeeper.jmx.log4j.disable=true",
                                   "-Dzookeeper.fastleader.minNotificationInterval=50"};
  if (config_.for_long) {
    line.emplace_back("-Xmx512m");
  } else {
    line.insert(line.end(), {"-XX:TieredStopAtLevel=1", "-Xmx128m"});
  }
  if (!config_.sync_to_disk) line.emplace_back("-Dzookeeper.forceSync=no");
  for (const std::string& each : config_.properties) line.push_back("-D" + each);
  line.insert(line.end(),
              {"-cp", class_path, membership_ ? member_class : standalone_class, directory_.path() + "/zoo.cfg"});
  return line;
}

void ZooKeeperServer::launch() {
  write_configuration();
  process_ = std::make_unique<rig::ChildProcess>(command());
}

void ZooKeeperServer::await_serving() const {
  const auto give_up = std::chrono::steady_clock::now() + rig::hang_guard;
  while (mode().empty()) {
    if (!running()) throw std::runtime_error("ZooKeeper ended\n" + process_->output());
    if (std::chrono::steady_clock::now() > give_up) throw std::runtime_error("hang: ZooKeeper does not serve");
    wait_a_moment(*process_);
  }
}

void ZooKeeperServer::start() {
  launch();
  await_serving();
}

void ZooKeeperServer::stop() {
  process_->signal(SIGTERM);
  if (const int status = process_->wait(); status != ended_by_request && status != 0) {
    throw std::runtime_error("ZooKeeper ended with status " + std::to_string(status) + "\n" + process_->output());
  }
}

void ZooKeeperServer::kill() {
  process_->signal(SIGKILL);
  (void)process_->wait();
}

std::string ZooKeeperServer::ask(const std::string& word) const {
  try {
    const rig::UniqueFd connection = rig::connect_to(rig::Endpoint::loopback(port_));
    const timeval limit{.tv_sec = 0, .tv_usec = std::chrono::microseconds(answer_limit).count()};
    rig::require(::setsockopt(connection.get(), SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit)), "SO_RCVTIMEO");
    rig::require(::send(connection.get(), word.data(), word.size(), MSG_NOSIGNAL), "send");
    std::string answer;
    std::array<char, 4096> bytes;
    for (;;) {
      const auto n = rig::require(::recv(connection.get(), bytes.data(), bytes.size(), 0), "recv");
      if (n == 0) return answer;
      answer.append(bytes.data(), static_cast<std::size_t>(n));
    }
  } catch (const std::system_error&) {
    return {};  // it is down, going down, or stands still
  }
}

std::string ZooKeeperServer::mode() const {
  constexpr std::string_view field = "\nMode: ";
  const std::string answer = ask("srvr");
  const auto found = answer.find(field);
  if (found == std::string::npos) return {};
  const auto from = found + field.size();
  return answer.substr(from, answer.find('\n', from) - from);
}

std::int64_t ZooKeeperServer::figure(const std::string& name) const {
  const std::string answer = "\n" + ask("mntr");
  const std::string start = "\n" + name + "\t";
  const auto found = answer.find(start);
  std::int64_t value = 0;
  if (found == std::string::npos) throw std::runtime_error("mntr says nothing of " + name);
  const std::string_view digits = std::string_view(answer).substr(found + start.size());
  if (std::from_chars(digits.data(), digits.data() + digits.size(), value).ec != std::errc()) {
    throw std::runtime_error("mntr has no number for " + name);
  }
  return value;
}

ZooKeeperEnsemble::ZooKeeperEnsemble(ZooKeeperConfig config, std::size_t size) {
  for (int i = 0; i < start_attempts; ++i) {
    if (try_to_start(config, size)) return;
  }
  throw std::runtime_error("no ensemble comes up\n" + servers_.front()->process().output());
}

bool ZooKeeperEnsemble::try_to_start(const ZooKeeperConfig& config, std::size_t size) {
  servers_.clear();
  std::vector<ZooKeeperMembership::Ports> ports;
  for (std::size_t i = 0; i < size; ++i) {
    ports.push_back({.client = free_port(), .quorum = free_port(), .election = free_port()});
  }
  for (std::size_t i = 0; i < size; ++i) {
    servers_.push_back(std::make_unique<ZooKeeperServer>(config, ZooKeeperMembership{.all = ports, .own = i}));
    servers_.back()->launch();
  }
  for (const auto& each : servers_) {
    const auto give_up = std::chrono::steady_clock::now() + rig::hang_guard;
    while (each->mode().empty()) {
      // Somebody took one of its ports.
      if (!each->running() || std::chrono::steady_clock::now() > give_up) return false;
      wait_a_moment(each->process());
    }
  }
  return true;
}

std::string ZooKeeperEnsemble::addresses() const {
  return address_list(servers_);
}

std::string ZooKeeperEnsemble::url(const std::string& parameters) const {
  return url_of(addresses(), parameters);
}

std::size_t ZooKeeperEnsemble::leader() const {
  const auto give_up = std::chrono::steady_clock::now() + rig::hang_guard;
  for (;;) {
    for (std::size_t i = 0; i < servers_.size(); ++i) {
      if (!servers_[i]->running()) continue;
      if (servers_[i]->mode() == "leader") return i;
      wait_a_moment(servers_[i]->process());
    }
    if (std::chrono::steady_clock::now() > give_up) throw std::runtime_error("hang: no leader is elected");
  }
}

std::size_t ZooKeeperEnsemble::follower(std::optional<std::size_t> except) const {
  const std::size_t led_by = leader();
  for (std::size_t i = 0; i < servers_.size(); ++i) {
    if (i != led_by && i != except && servers_[i]->running()) return i;
  }
  throw std::runtime_error("there is no such follower");
}

void ZooKeeperEnsemble::await_serving() const {
  for (const auto& each : servers_) {
    if (each->running()) each->await_serving();
  }
}

void ZooKeeperEnsemble::start() {
  for (const auto& each : servers_) {
    if (!each->running()) each->launch();
  }
  await_serving();
}

void ZooKeeperEnsemble::stop() {
  for (const auto& each : servers_) {
    if (each->running()) each->stop();
  }
}

}  // namespace dlock::test
