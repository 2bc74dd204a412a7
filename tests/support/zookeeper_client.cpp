#include "tests/support/zookeeper_client.hpp"

#include <zookeeper/zookeeper.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <condition_variable>
#include <mutex>
#include <system_error>
#include <utility>

#include "torture/rig/hang_guard.hpp"

namespace dlock::test {
namespace {

constexpr std::size_t longest_path = 4096;
constexpr std::size_t longest_data = 65536;

void say_nothing(const char* /*message*/) {}

bool is_connection_trouble(int code) {
  return code == ZCONNECTIONLOSS || code == ZOPERATIONTIMEOUT;
}
bool is_end_of_session(int code) {
  return code == ZSESSIONEXPIRED || code == ZINVALIDSTATE;
}

void require_ok(int code, const std::string& what) {
  if (code != ZOK) throw ZooKeeperRefusal(what, code);
}

// The password by which the client of this session identifies itself: 16 bytes of java.util.Random, seeded with the
// session and a constant (generatePasswd() of ZooKeeperServer.java, and the documentation of java.util.Random).
clientid_t credentials_of(std::int64_t session) {
  constexpr std::uint64_t server_constant = 0xB3415C00;
  constexpr std::uint64_t multiplier = 0x5DEECE66D;
  constexpr std::uint64_t mask = (std::uint64_t{1} << 48U) - 1;
  clientid_t id{.client_id = session, .passwd = {}};
  std::uint64_t state = ((static_cast<std::uint64_t>(session) ^ server_constant) ^ multiplier) & mask;
  for (std::size_t i = 0; i < sizeof(id.passwd); ++i) {
    if (i % 4 == 0) state = (state * multiplier + 11) & mask;
    id.passwd[i] = static_cast<char>(static_cast<unsigned char>(state >> (16U + 8U * (i % 4))));
  }
  return id;
}

}  // namespace

ZooKeeperRefusal::ZooKeeperRefusal(const std::string& what, int code)
    : std::runtime_error(what + ": " + zerror(code)), code_(code) {}

struct ZooKeeperClient::Connection {
  // id: of a session to continue.
  Connection(const std::string& addresses, std::chrono::milliseconds timeout, const clientid_t* id = nullptr) {
    handle = zookeeper_init2(addresses.c_str(), &Connection::on_event, static_cast<int>(timeout.count()), id, this,
                             ZOO_NO_LOG_CLIENTENV, &say_nothing);
    if (handle == nullptr) throw std::system_error(errno, std::generic_category(), "zookeeper_init2");
  }
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;
  ~Connection() {
    (void)zookeeper_close(handle);  // without a reachable server, the session ends by itself
  }

  static void on_event(zhandle_t* /*zh*/, int type, int state, const char* /*path*/, void* context) {
    if (type != ZOO_SESSION_EVENT) return;
    auto& self = *static_cast<Connection*>(context);
    const std::scoped_lock lock(self.mutex);
    self.state = state;
    self.changed.notify_all();
  }
  // Waits until there is a session, or there cannot be one any more.
  void await_session() {
    std::unique_lock lock(mutex);
    const bool settled = changed.wait_for(lock, rig::hang_guard, [this] {
      return state == ZOO_CONNECTED_STATE || state == ZOO_EXPIRED_SESSION_STATE || state == ZOO_AUTH_FAILED_STATE;
    });
    if (!settled) throw std::runtime_error("hang: no connection to ZooKeeper");
  }
  zhandle_t* handle = nullptr;
  std::mutex mutex;
  std::condition_variable changed;
  int state = 0;
};

ZooKeeperClient::ZooKeeperClient(std::string addresses, const std::string& digest,
                                 std::chrono::milliseconds session_timeout)
    : addresses_(std::move(addresses)), digest_(digest), session_timeout_(session_timeout) {
  open();
}

ZooKeeperClient::~ZooKeeperClient() = default;

void ZooKeeperClient::open() {
  connection_.reset();
  connection_ = std::make_unique<Connection>(addresses_, session_timeout_);
  connection_->await_session();
  if (digest_.empty()) return;
  // A server that refuses it refuses what follows.
  require_ok(
      zoo_add_auth(connection_->handle, "digest", digest_.c_str(), static_cast<int>(digest_.size()), nullptr, nullptr),
      "zoo_add_auth");
}

int ZooKeeperClient::repeat(const std::function<int()>& call) {
  const auto give_up = std::chrono::steady_clock::now() + rig::hang_guard;
  for (;;) {
    const int code = call();
    if (std::chrono::steady_clock::now() > give_up) return code;
    if (is_end_of_session(code)) {
      open();
    } else if (is_connection_trouble(code)) {
      connection_->await_session();
    } else {
      return code;
    }
  }
}

std::string ZooKeeperClient::create(const std::string& path, const std::string& data, Kind kind, Access access) {
  std::array<char, longest_path> name{};
  const ACL_vector& acl = access == Access::creator ? ZOO_CREATOR_ALL_ACL : ZOO_OPEN_ACL_UNSAFE;
  require_ok(zoo_create(connection_->handle, path.c_str(), data.data(), static_cast<int>(data.size()), &acl,
                        static_cast<int>(kind), name.data(), static_cast<int>(name.size())),
             "create " + path);
  return name.data();
}

void ZooKeeperClient::forbid_changes(const std::string& path) {
  require_ok(zoo_set_acl(connection_->handle, path.c_str(), -1, &ZOO_READ_ACL_UNSAFE), "protect " + path);
}

void ZooKeeperClient::create_all(const std::string& path) {
  for (std::size_t at = path.find('/', 1);; at = path.find('/', at + 1)) {
    const std::string each = path.substr(0, at);
    if (!get(each)) {
      try {
        create(each);
      } catch (const ZooKeeperRefusal& refusal) {
        if (refusal.code() != ZNODEEXISTS) throw;
      }
    }
    if (at == std::string::npos) return;
  }
}

bool ZooKeeperClient::remove(const std::string& path) {
  const int code = repeat([&] { return zoo_delete(connection_->handle, path.c_str(), -1); });
  if (code == ZNONODE) return false;
  require_ok(code, "delete " + path);
  return true;
}

void ZooKeeperClient::remove_all(const std::string& path) {
  for (;;) {
    const auto names = children(path);
    if (!names) return;
    for (const std::string& each : *names) remove_all(path == "/" ? "/" + each : path + "/" + each);
    try {
      (void)remove(path);
      return;
    } catch (const ZooKeeperRefusal& refusal) {
      if (refusal.code() != ZNOTEMPTY) throw;
    }
  }
}

std::optional<ZooKeeperClient::Node> ZooKeeperClient::get(const std::string& path) {
  std::string data(longest_data, '\0');
  int size = 0;
  Stat stat{};
  const int code = repeat([&] {
    size = static_cast<int>(data.size());
    return zoo_get(connection_->handle, path.c_str(), 0, data.data(), &size, &stat);
  });
  if (code == ZNONODE) return std::nullopt;
  require_ok(code, "get " + path);
  data.resize(static_cast<std::size_t>(std::max(size, 0)));
  return Node{.data = std::move(data), .created = stat.czxid, .owner = stat.ephemeralOwner};
}

std::optional<std::vector<std::string>> ZooKeeperClient::children(const std::string& path) {
  String_vector list{};
  const int code = repeat([&] { return zoo_get_children(connection_->handle, path.c_str(), 0, &list); });
  if (code == ZNONODE) return std::nullopt;
  require_ok(code, "children of " + path);
  std::vector<std::string> names(list.data, list.data + list.count);
  (void)deallocate_String_vector(&list);
  std::sort(names.begin(), names.end());
  return names;
}

// A write goes through the leader, even one that fails. The server answers it after all changes before it.
void ZooKeeperClient::sync() {
  (void)remove("/none");
}

void end_session_of(const std::string& addresses, const std::string& node) {
  ZooKeeperClient looking(addresses);
  const auto give_up = std::chrono::steady_clock::now() + rig::hang_guard;
  const auto first = looking.get(node);
  // Its own client may take the session back before it is closed, and a later client may have a node of this name.
  for (auto found = first; found && found->owner == first->owner; found = looking.get(node)) {
    const clientid_t id = credentials_of(found->owner);
    ZooKeeperClient::Connection taken(addresses, std::chrono::seconds(30), &id);
    taken.await_session();
    if (std::chrono::steady_clock::now() > give_up) throw std::runtime_error("hang: the session cannot be ended");
  }
}

}  // namespace dlock::test
