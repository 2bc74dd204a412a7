#include "tests/torture/integration/services.hpp"

#include <utility>

#include "torture/rig/scratch_directory.hpp"
#ifdef DLOCK_FAULT_REDIS
#include "tests/support/redis_server.hpp"
#endif
#ifdef DLOCK_FAULT_POSTGRES
#include "tests/support/postgres_server.hpp"
#endif
#ifdef DLOCK_FAULT_ETCD
#include "tests/support/etcd_server.hpp"
#endif
#ifdef DLOCK_FAULT_ZOOKEEPER
#include "tests/support/zookeeper_server.hpp"
#endif

namespace dlock::torture {
namespace {

// A server, and what its URL ends in.
template <class Server>
class OwnServer final : public Service {
 public:
  explicit OwnServer(std::string parameters) : parameters_(std::move(parameters)) {}
  [[nodiscard]] std::string url() const override { return server_.url(parameters_); }

 private:
  Server server_;
  std::string parameters_;
};

template <class Server>
std::function<std::unique_ptr<Service>()> server(std::string parameters) {
  return [parameters = std::move(parameters)] { return std::make_unique<OwnServer<Server>>(parameters); };
}

class Directory final : public Service {
 public:
  [[nodiscard]] std::string url() const override { return "file://" + directory_.path(); }

 private:
  rig::ScratchDirectory directory_;
};

}  // namespace

std::vector<ServiceKind> all_services() {
  std::vector<ServiceKind> all;
#ifdef DLOCK_FAULT_FILE
  all.push_back({"file", false, [] { return std::make_unique<Directory>(); }});
#endif
#ifdef DLOCK_FAULT_REDIS
  all.push_back({"redis", true, server<test::RedisServer>("lease=2s")});
#endif
#ifdef DLOCK_FAULT_POSTGRES
  all.push_back({"postgres_table", true, server<test::PostgresServer>("lease=2s")});
  all.push_back({"postgres_advisory", false, server<test::PostgresServer>("strategy=advisory&lease=2s")});
#endif
#ifdef DLOCK_FAULT_ZOOKEEPER
  all.push_back({"zookeeper", false, server<test::ZooKeeperServer>("session_timeout=2s")});
#endif
#ifdef DLOCK_FAULT_ETCD
  all.push_back({"etcd", false, server<test::EtcdServer>("session_ttl=2s")});
#endif
  return all;
}

}  // namespace dlock::torture
