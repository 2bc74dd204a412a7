#include "tests/support/zookeeper_server.hpp"

#include <charconv>
#include <filesystem>
#include <sstream>
#include <stdexcept>
#include <string_view>
#include <system_error>
#include <utility>

namespace dlock::test {
namespace {

constexpr const char* words = "srvr,mntr,ruok,cons,wchs,srst,dump,stat,conf,isro";

// Debian's path; the archive itself names what else it needs.
constexpr const char* class_path = "/usr/share/java/zookeeper.jar";
constexpr const char* standalone_class = "org.apache.zookeeper.server.ZooKeeperServerMain";
constexpr const char* member_class = "org.apache.zookeeper.server.quorum.QuorumPeerMain";

}  // namespace

ZooKeeperServer::ZooKeeperServer(ZooKeeperConfig config) : Server("ZooKeeper"), config_(std::move(config)) {
  start_on_free_ports();
}

ZooKeeperServer::ZooKeeperServer(ZooKeeperConfig config, Membership membership)
    : Server("ZooKeeper"), config_(std::move(config)), membership_(std::move(membership)) {
  set_port(membership_->ports().client);
}

std::string ZooKeeperServer::url_of(const std::string& addresses, const std::string& parameters) const {
  if (parameters.starts_with('/')) return "zookeeper://" + addresses + parameters;
  return with_parameters("zookeeper://" + addresses, {parameters});
}

std::vector<std::string> ZooKeeperServer::configure() {
  const std::string data = directory() + "/data";
  const std::string file = directory() + "/zoo.cfg";
  std::filesystem::create_directories(data);
  std::ostringstream text;
  text << "dataDir=" << data << "\nclientPort=" << port() << "\nclientPortAddress=127.0.0.1\n"
       << "tickTime=" << config_.tick.count() << "\nminSessionTimeout=" << config_.min_session.count()
       << "\nmaxSessionTimeout=" << config_.max_session.count() << "\nmaxClientCnxns=0\nadmin.enableServer=false\n"
       << "4lw.commands.whitelist=" << words << "\n";
  if (membership_) {
    text << "initLimit=100\nsyncLimit=20\nstandaloneEnabled=false\n";
    std::size_t number = 0;
    for (const auto& each : membership_->all) {
      text << "server." << ++number << "=127.0.0.1:" << each.peer << ":" << each.other << "\n";
    }
    write_file(data + "/myid", std::to_string(membership_->own + 1) + "\n");
  }
  for (const std::string& line : config_.lines) text << line << "\n";
  write_file(file, text.str());

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
  line.insert(line.end(), {"-cp", class_path, membership_ ? member_class : standalone_class, file});
  return line;
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

ZooKeeperEnsemble::ZooKeeperEnsemble(const ZooKeeperConfig& config, std::size_t size)
    : Ensemble(size,
               [&](const Membership& membership) { return std::make_unique<ZooKeeperServer>(config, membership); }) {}

}  // namespace dlock::test
