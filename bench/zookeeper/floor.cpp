#include "zookeeper/floor.hpp"

#include <zookeeper/zookeeper.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <stdexcept>
#include <string_view>

namespace bench {

namespace {

constexpr int session_ms = 30'000;
constexpr std::chrono::seconds connect_limit{30};
constexpr std::string_view node_prefix = "/_c_0e1cf9d8-5f6c-4a49-8f0a-1c0f0c3f1b2d-lock-";
constexpr std::string_view data = "host:1:floor";

void say_nothing(const char* /*message*/) {}

void require(int code, const char* what) {
  if (code != ZOK) throw std::runtime_error(std::string(what) + ": " + zerror(code));
}

}  // namespace

void Floor::Close::operator()(zhandle_t* handle) const noexcept {
  (void)zookeeper_close(handle);  // nothing is left to do where that fails
}

void Floor::on_event(zhandle_t* /*handle*/, int type, int state, const char* /*path*/, void* context) {
  auto& self = *static_cast<Floor*>(context);
  if (type != ZOO_SESSION_EVENT || state != ZOO_CONNECTED_STATE) return;
  const std::scoped_lock lock(self.mutex_);
  self.connected_ = true;
  self.changed_.notify_all();
}

Floor::Floor(const std::string& addresses, Resolution resolution)
    : handle_(zookeeper_init2(addresses.c_str(), &Floor::on_event, session_ms, nullptr, this, ZOO_NO_LOG_CLIENTENV,
                              &say_nothing)) {
  if (!handle_) throw std::runtime_error("zookeeper_init2");
  if (resolution == Resolution::never) {
    require(zoo_set_servers_resolution_delay(handle_.get(), -1), "zoo_set_servers_resolution_delay");
  }
  std::unique_lock lock(mutex_);
  if (!changed_.wait_for(lock, connect_limit, [this] { return connected_; })) {
    throw std::runtime_error("cannot connect to ZooKeeper");
  }
}

void Floor::make_parent(const std::string& path) const {
  for (std::size_t at = path.find('/', 1);; at = path.find('/', at + 1)) {
    const int code =
        zoo_create(handle_.get(), path.substr(0, at).c_str(), "", 0, &ZOO_OPEN_ACL_UNSAFE, ZOO_PERSISTENT, nullptr, 0);
    if (code != ZNODEEXISTS) require(code, "create");
    if (at == std::string::npos) return;
  }
}

std::string Floor::acquire(const std::string& parent) const {
  std::array<char, 512> path{};
  require(
      zoo_create(handle_.get(), (parent + std::string(node_prefix)).c_str(), data.data(), static_cast<int>(data.size()),
                 &ZOO_OPEN_ACL_UNSAFE, ZOO_EPHEMERAL_SEQUENTIAL, path.data(), static_cast<int>(path.size())),
      "create");
  std::string node = path.data();
  String_vector children{};
  require(zoo_get_children(handle_.get(), parent.c_str(), 0, &children), "get_children");
  const std::string_view own = std::string_view(node).substr(parent.size() + 1);
  const bool first = std::all_of(children.data, children.data + children.count, [&](const char* each) {
    const std::string_view other = each;
    return own.substr(own.size() - 10) <= other.substr(other.size() - 10);
  });
  (void)deallocate_String_vector(&children);
  if (!first) throw std::runtime_error("somebody else holds the floor's lock");
  return node;
}

void Floor::release(const std::string& node) const {
  require(zoo_delete(handle_.get(), node.c_str(), -1), "delete");
}

}  // namespace bench
