#include "tests/support/galera_cluster.hpp"

#include <sys/stat.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <stdexcept>
#include <string_view>
#include <utility>

#include "tests/support/free_port.hpp"
#include "torture/rig/hang_guard.hpp"
#include "torture/rig/scratch_directory.hpp"
#include "torture/rig/system_call.hpp"

namespace dlock::test {
namespace {

constexpr const char* provider = "/usr/lib/galera/libgalera_smm.so";
constexpr std::size_t nodes = 3;

std::string at(std::uint16_t port) {
  return "127.0.0.1:" + std::to_string(port);
}

// The cluster excludes a frozen node after 1.5 seconds instead of five. The thread's priority is not changed, which a
// container may forbid.
std::vector<std::string> options_of(const Membership::Ports& ports) {
  return {"--wsrep-on=ON",
          std::string("--wsrep-provider=") + provider,
          "--binlog-format=ROW",
          "--innodb-autoinc-lock-mode=2",
          "--wsrep-sst-method=cache",
          "--wsrep-node-address=" + at(ports.peer),
          "--wsrep-provider-options=gmcast.listen_addr=tcp://" + at(ports.peer) + ";ist.recv_addr=" + at(ports.other) +
              ";gcomm.thread_prio=;gcache.size=32M;evs.inactive_check_period=PT0.1S;evs.keepalive_period=PT0.2S"
              ";evs.suspect_timeout=PT1.5S;evs.inactive_timeout=PT3S;evs.install_timeout=PT3S"};
}

// A stopped cluster of one node: a node that starts with a copy of its data belongs to the cluster.
class FirstNode {
 public:
  FirstNode() : server_({.options = options()}) {
    server_.await("EXISTS (SELECT 1 FROM mysql.global_priv WHERE User = 'locker')");
    server_.stop();
    std::filesystem::remove(data() + "/galera.cache");
  }
  [[nodiscard]] std::string data() const { return server_.directory() + "/data"; }

 private:
  static std::vector<std::string> options() {
    std::vector<std::string> all = options_of({});
    all.insert(all.end(), {"--wsrep-cluster-address=gcomm://", "--wsrep-new-cluster"});
    return all;
  }

  MysqlServer server_;
};

const std::string& data_of_first_node() {
  static const FirstNode first;
  static const std::string data = first.data();
  return data;
}

// mariadbd runs wsrep_sst_<method> at a node that joins, and at one that is to send it all its data. In Debian, only
// mariadb-server has those scripts. In these tests, the other nodes still have the changes that the node lacks in their
// caches, so only the first messages of the two scripts are needed.
const std::string& directory_of_script() {
  static const rig::ScratchDirectory directory;
  static const std::string path = [] {
    const std::string script = directory.path() + "/wsrep_sst_cache";
    write_file(script,
               "#!/bin/sh\n"
               "case \"$*\" in\n"
               "*joiner*)\n"
               "  echo 'ready 127.0.0.1'\n"
               "  for option; do case $option in --wsrep-start-position=*) echo \"${option#*=} 0\" ;; esac; done ;;\n"
               "*--bypass*) while [ \"$1\" != --gtid ]; do shift; done; echo \"done $2\" ;;\n"
               "*) echo 'the cache lacks changes' >&2; exit 1 ;;\n"
               "esac\n");
    constexpr mode_t for_all = 0755;
    rig::require(::chmod(script.c_str(), for_all), "chmod");
    rig::require(::chmod(directory.path().c_str(), for_all), "chmod");
    return directory.path();
  }();
  return path;
}

// The last change in the tables, which a killed server has written nowhere else.
std::string position(std::vector<std::string> command) {
  command.emplace_back("--wsrep-recover");
  const std::string output = rig::run_command(std::move(command));
  constexpr std::string_view label = "Recovered position: ";
  const std::size_t found = output.find(label);
  if (found == std::string::npos) throw std::runtime_error("no position in the cluster\n" + output);
  const std::size_t begin = found + label.size();
  return output.substr(begin, output.find('\n', begin) - begin);
}

}  // namespace

GaleraNode::GaleraNode(const Membership& membership)
    : MysqlServer({.options = options_of(membership.ports())}, data_of_first_node()), membership_(membership) {
  set_port(membership_.ports().client);
}

std::string GaleraNode::status(const std::string& name) const {
  return answer("SELECT VARIABLE_VALUE FROM information_schema.GLOBAL_STATUS WHERE VARIABLE_NAME = 'wsrep_" + name +
                "'");
}

void GaleraNode::isolate(bool on) {
  run(std::string("SET GLOBAL wsrep_provider_options = 'gmcast.isolate=") + (on ? "1'" : "0'"));
  const auto give_up = std::chrono::steady_clock::now() + rig::hang_guard;
  while (on && serves()) {
    if (std::chrono::steady_clock::now() > give_up) throw std::runtime_error("hang: an isolated node serves");
    wait_a_moment();
  }
}

std::vector<std::string> GaleraNode::configure() {
  std::string others;
  for (const Membership::Ports& each : membership_.all) others += (others.empty() ? "" : ",") + at(each.peer);
  const bool first = membership_.own == 0 && !std::exchange(launched_, true);
  std::vector<std::string> command = MysqlServer::configure();
  command.push_back("--wsrep-cluster-address=gcomm://" + (first ? "" : others));
  if (first) command.emplace_back("--wsrep-new-cluster");
  command.push_back("--wsrep-start-position=" + position(command));
  const char* const path = std::getenv("PATH");
  command.insert(command.begin(), {"env", "PATH=" + directory_of_script() + ":" + (path == nullptr ? "" : path)});
  return command;
}

bool GaleraCluster::is_installed() {
  return std::filesystem::exists(provider);
}

GaleraCluster::GaleraCluster()
    : Ensemble(nodes, [](const Membership& membership) { return std::make_unique<GaleraNode>(membership); }) {}

}  // namespace dlock::test
