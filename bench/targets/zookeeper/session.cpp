#include "bench/targets/zookeeper/session.hpp"

#include <zookeeper/zookeeper.h>

#include <chrono>
#include <stdexcept>
#include <string_view>

#include "bench/targets/service_target.hpp"

namespace dlock::bench {

namespace {

constexpr int session_ms = 30'000;

void say_nothing(const char* /*message*/) {}

std::string connect_string(const rig::UrlText& url) {
  std::string text;
  for (const rig::HostPort& each : url.hosts({.name = "localhost", .port = 2181})) {
    text += (text.empty() ? "" : ",") + each.name + ":" + std::to_string(each.port);
  }
  const std::string& chroot = url.original().path();
  return chroot == "/" ? text : text + chroot;
}

}  // namespace

void require_ok(int code, const char* what) {
  if (code != ZOK) throw std::runtime_error(std::string("ZooKeeper: ") + what + ": " + zerror(code));
}

void ZooKeeperSession::Close::operator()(zhandle_t* handle) const noexcept {
  (void)zookeeper_close(handle);  // nothing is left to do where that fails
}

void ZooKeeperSession::on_event(zhandle_t* /*handle*/, int type, int state, const char* /*path*/, void* context) {
  auto& self = *static_cast<ZooKeeperSession*>(context);
  if (type != ZOO_SESSION_EVENT || state != ZOO_CONNECTED_STATE) return;
  const std::scoped_lock lock(self.mutex_);
  self.connected_ = true;
  self.changed_.notify_all();
}

ZooKeeperSession::ZooKeeperSession(const rig::UrlText& url)
    : handle_(zookeeper_init2(connect_string(url).c_str(), &ZooKeeperSession::on_event, session_ms, nullptr, this,
                              ZOO_NO_LOG_CLIENTENV, &say_nothing)) {
  constexpr std::string_view scheme = "digest:";
  if (!handle_) throw std::runtime_error("ZooKeeper: zookeeper_init2 fails");
  {
    std::unique_lock lock(mutex_);
    if (!changed_.wait_for(lock, answer_limit, [this] { return connected_; })) {
      throw std::runtime_error("ZooKeeper cannot be reached");
    }
  }
  if (const auto auth = url.parameter("auth"); auth && auth->starts_with(scheme)) {
    const std::string digest = auth->substr(scheme.size());
    // Requests that follow go behind it.
    require_ok(zoo_add_auth(get(), "digest", digest.data(), static_cast<int>(digest.size()), nullptr, nullptr),
               "add_auth");
  }
}

void ZooKeeperSession::make(const std::string& path) const {
  for (std::size_t at = path.find('/', 1);; at = path.find('/', at + 1)) {
    const int code =
        zoo_create(get(), path.substr(0, at).c_str(), "", 0, &ZOO_OPEN_ACL_UNSAFE, ZOO_PERSISTENT, nullptr, 0);
    if (code != ZNODEEXISTS) require_ok(code, "create");
    if (at == std::string::npos) return;
  }
}

}  // namespace dlock::bench
