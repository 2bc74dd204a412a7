#include "bench/targets/zookeeper/target.hpp"

#include <algorithm>
#include <exception>
#include <optional>

#include "backends/zookeeper/nodes/node_name.hpp"
#include "bench/targets/own_name.hpp"
#include "bench/targets/zookeeper/floor.hpp"
#include "bench/targets/zookeeper/removal.hpp"
#include "bench/targets/zookeeper/server_words.hpp"
#include "bench/targets/zookeeper/session.hpp"
#include "torture/rig/detour.hpp"
#include "torture/rig/network.hpp"

namespace dlock::bench {

namespace {

// A server's limit for connections from one address, unless it is configured.
constexpr double usual_connections = 60;
// Of these, those left for clients, and for other programs on this machine.
constexpr double spare_connections = 20;
constexpr const char* counted_watches[] = {"zk_sum_node_created_watch_count", "zk_sum_node_deleted_watch_count",
                                           "zk_sum_node_changed_watch_count", "zk_sum_node_children_watch_count"};

class ZooKeeperTarget final : public ServiceTarget {
 public:
  ZooKeeperTarget(const rig::UrlText& given, const std::string& strategy);

  void prepare() override;
  [[nodiscard]] std::size_t most_floors() const override { return most_floors_; }
  [[nodiscard]] bool has_floor() const override { return true; }
  [[nodiscard]] std::unique_ptr<Floor> floor_at(const rig::UrlText& url, const std::string& name) override;
  [[nodiscard]] std::optional<Operations> operations() override;
  void clean_up() override;

 private:
  [[nodiscard]] rig::UrlText url_for(std::size_t locks) const override;
  // The answers of all servers; empty if one of them does not answer.
  [[nodiscard]] std::vector<std::string> answers(const std::string& word) const;

  std::string own_name_ = own_name();
  bool own_prefix_;
  std::string prefix_;
  std::string floors_;  // the node below which theirs are
  std::size_t most_floors_ = 0;
  double questions_ = 0;  // that we have asked the servers, who count them as packets
};

ZooKeeperTarget::ZooKeeperTarget(const rig::UrlText& given, const std::string& strategy)
    : ServiceTarget(given, "zookeeper", strategy) {
  const auto prefix = given.parameter("prefix");
  own_prefix_ = !prefix;
  prefix_ = prefix.value_or("/" + own_name_);
  if (prefix_ == "/") prefix_.clear();
  floors_ = prefix_ + "/" + own_name_ + "-floor";
}

rig::UrlText ZooKeeperTarget::url_for(std::size_t /*locks*/) const {
  rig::UrlText url = given();
  url.set("strategy", info().strategy);
  url.set("prefix", prefix_);
  return url;
}

std::vector<std::string> ZooKeeperTarget::answers(const std::string& word) const {
  std::vector<std::string> all;
  try {
    for (const rig::HostPort& each : rig::hosts_for_proxies(given())) all.push_back(rig::ask(each, word, answer_limit));
  } catch (const std::exception&) {
    return {};
  }
  return all;
}

void ZooKeeperTarget::prepare() {
  add_setting("servers", std::to_string(rig::hosts_for_proxies(given()).size()));
  const auto mntr = answers("mntr");
  const auto conf = answers("conf");
  double most = usual_connections;
  if (!conf.empty()) most = conf_number(conf.front(), "maxClientCnxns").value_or(usual_connections);
  most_floors_ = most == 0 ? 0 : static_cast<std::size_t>(std::max(most - spare_connections, 1.0));
  if (mntr.empty()) return;
  add_setting("version", mntr_version(mntr.front()));
  // Only a server that waits for the disk counts this. A lock was taken before, so it has had something to write.
  if (const auto syncs = mntr_number(mntr.front(), "zk_cnt_fsynctime")) {
    add_setting("forceSync", *syncs > 0 ? "yes" : "no");
  }
}

std::unique_ptr<Floor> ZooKeeperTarget::floor_at(const rig::UrlText& url, const std::string& name) {
  std::string node;
  for (const char c : name) node += c == '/' ? std::string("%2F") : c == '%' ? std::string("%25") : std::string(1, c);
  if (info().strategy == "ephemeral") return std::make_unique<ZooKeeperNodeFloor>(url, floors_, node);
  return std::make_unique<ZooKeeperQueueFloor>(url, floors_ + "/" + node);
}

std::optional<Operations> ZooKeeperTarget::operations() {
  const auto all = answers("mntr");
  Operations sum{.carried_out = 0, .wake_ups = 0.0};
  if (all.empty()) return std::nullopt;
  for (const std::string& each : all) {
    const auto received = mntr_number(each, "zk_packets_received");
    if (!received) return std::nullopt;  // the word is not whitelisted
    sum.carried_out += *received;
    for (const char* name : counted_watches) {
      const auto watches = mntr_number(each, name);
      if (sum.wake_ups && watches) {
        *sum.wake_ups += *watches;
      } else {
        sum.wake_ups.reset();
      }
    }
  }
  questions_ += static_cast<double>(all.size());
  sum.carried_out -= questions_;
  return sum;
}

// Where the user has a prefix, only the nodes of floors are removed: those of locks go with their sessions, and what is
// left of a lock the servers remove by themselves.
void ZooKeeperTarget::clean_up() {
  const ZooKeeperSession session(given());
  if (!own_prefix_) {
    remove_tree(session.get(), floors_);
    return;
  }
  for (const LockKind each : {LockKind::lock, LockKind::read_write, LockKind::semaphore}) {
    remove_tree(session.get(), zookeeper::kind_path(prefix_, each));
  }
}

}  // namespace

const std::vector<std::string>& zookeeper_strategies() {
  static const std::vector<std::string> all = {"sequential", "sequential-herd", "ephemeral"};
  return all;
}

std::unique_ptr<ServiceTarget> make_zookeeper_target(const rig::UrlText& url, const std::string& strategy) {
  return std::make_unique<ZooKeeperTarget>(url, strategy);
}

}  // namespace dlock::bench
