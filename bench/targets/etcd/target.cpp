#include "bench/targets/etcd/target.hpp"

#include <cstddef>
#include <exception>
#include <optional>
#include <string>
#include <string_view>

#include "backends/etcd/wire/protobuf.hpp"
#include "bench/targets/etcd/connection.hpp"
#include "bench/targets/etcd/floor.hpp"
#include "bench/targets/etcd/metrics.hpp"
#include "bench/targets/own_name.hpp"
#include "torture/rig/detour.hpp"
#include "torture/rig/network.hpp"

namespace dlock::bench {

namespace {

using etcd::MessageReader;
using etcd::MessageWriter;

class EtcdTarget final : public ServiceTarget {
 public:
  explicit EtcdTarget(const rig::UrlText& given);

  void prepare() override;
  [[nodiscard]] bool has_floor() const override { return true; }
  [[nodiscard]] std::unique_ptr<Floor> floor_at(const rig::UrlText& url, const std::string& name) override;
  [[nodiscard]] std::optional<Operations> operations() override;
  void clean_up() override;

 private:
  [[nodiscard]] rig::UrlText url_for(std::size_t locks) const override;

  std::string own_name_ = own_name();
  bool own_prefix_;
  std::string prefix_;
  std::string floors_;  // what the keys of floors begin with
};

// Everything from the first key to the second, which stays.
void remove_keys(EtcdConnection& connection, const std::string& from, const std::string& to) {
  const std::string request = MessageWriter().bytes(1, from).bytes(2, to).take();
  (void)connection.call("/etcdserverpb.KV/DeleteRange", request);
}

std::string version_of(EtcdConnection& connection) {
  const std::string answer = connection.call("/etcdserverpb.Maintenance/Status", "");
  MessageReader reader(answer);
  std::string version;
  while (reader.next()) {
    if (reader.field() == 2) version = reader.bytes();
  }
  return version;
}

std::size_t members_of(EtcdConnection& connection) {
  const std::string answer = connection.call("/etcdserverpb.Cluster/MemberList", "");
  MessageReader reader(answer);
  std::size_t members = 0;
  while (reader.next()) {
    if (reader.field() == 2) ++members;
  }
  return members;
}

EtcdTarget::EtcdTarget(const rig::UrlText& given) : ServiceTarget(given, "etcd", "") {
  const auto prefix = given.parameter("prefix");
  own_prefix_ = !prefix;
  prefix_ = prefix.value_or(own_name_ + "/");
  floors_ = prefix_ + own_name_ + "-floor/";
}

rig::UrlText EtcdTarget::url_for(std::size_t /*locks*/) const {
  rig::UrlText url = given();
  url.set("prefix", prefix_);
  return url;
}

// Whatever the user has no right to is left out.
void EtcdTarget::prepare() {
  try {
    EtcdConnection connection(given());
    add_setting("version", version_of(connection));
    add_setting("members", std::to_string(members_of(connection)));
  } catch (const std::exception&) {
    // As above.
  }
}

std::unique_ptr<Floor> EtcdTarget::floor_at(const rig::UrlText& url, const std::string& name) {
  return std::make_unique<EtcdFloor>(url, floors_ + name);
}

// Where clients speak in plain text, servers tell it to any client.
std::optional<Operations> EtcdTarget::operations() {
  Operations sum{.carried_out = 0, .wake_ups = 0.0};
  const std::vector<rig::HostPort> hosts = rig::hosts_for_proxies(given());
  if (hosts.empty()) return std::nullopt;
  try {
    for (const rig::HostPort& each : hosts) {
      const std::string text = rig::ask(each, "GET /metrics HTTP/1.0\r\n\r\n", answer_limit);
      const auto received = metric_sum(text, "grpc_server_msg_received_total");
      const auto events = metric_sum(text, "etcd_debugging_mvcc_events_total");
      if (!received) return std::nullopt;
      sum.carried_out += *received;
      if (sum.wake_ups && events) {
        *sum.wake_ups += *events;
      } else {
        sum.wake_ups.reset();
      }
    }
  } catch (const std::exception&) {
    return std::nullopt;
  }
  return sum;
}

// Where the user has a prefix, only the keys of floors are removed: those of locks go with their sessions.
void EtcdTarget::clean_up() {
  static_assert('.' + 1 == '/' && '/' + 1 == '0');
  EtcdConnection connection(given());
  if (!own_prefix_) {
    remove_keys(connection, floors_, floors_.substr(0, floors_.size() - 1) + "0");
  } else {
    // <name>/ of locks, and <name>.rw/ and others of the other kinds.
    remove_keys(connection, own_name_ + ".", own_name_ + "0");
  }
}

}  // namespace

std::unique_ptr<ServiceTarget> make_etcd_target(const rig::UrlText& url) {
  return std::make_unique<EtcdTarget>(url);
}

}  // namespace dlock::bench
