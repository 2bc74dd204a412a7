// zookeeper://
#include <zookeeper/zookeeper.h>

#include <algorithm>
#include <array>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <stdexcept>
#include <utility>
#include <vector>

#include "bench/targets/service_target.hpp"
#include "torture/rig/detour.hpp"
#include "torture/rig/network.hpp"

namespace dlock::bench {

namespace {

void require_ok(int code, const char* what) {
  if (code != ZOK) throw std::runtime_error(std::string("ZooKeeper: ") + what + ": " + zerror(code));
}

// A session as in a program that uses the C client directly, with its defaults.
class Session {
 public:
  // Connects to the URL's servers and chroot, as its user, and waits for the connection. Like the other functions,
  // throws std::runtime_error.
  explicit Session(const rig::UrlText& url)
      : handle_(zookeeper_init2(connect_string(url).c_str(), &Session::on_event, session_ms, nullptr, this,
                                ZOO_NO_LOG_CLIENTENV, [](const char*) {})) {
    if (!handle_) throw std::runtime_error("ZooKeeper: zookeeper_init2 fails");
    {
      std::unique_lock lock(mutex_);
      if (!changed_.wait_for(lock, answer_limit, [this] { return connected_; })) {
        throw std::runtime_error("ZooKeeper cannot be reached");
      }
    }
    constexpr std::string_view scheme = "digest:";
    if (const auto auth = url.parameter("auth"); auth && auth->starts_with(scheme)) {
      const std::string digest = auth->substr(scheme.size());
      // Later requests are sent after it.
      require_ok(zoo_add_auth(get(), "digest", digest.data(), static_cast<int>(digest.size()), nullptr, nullptr),
                 "add_auth");
    }
  }
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  [[nodiscard]] zhandle_t* get() const noexcept { return handle_.get(); }

  // Returns the path of the new node.
  [[nodiscard]] std::string create(const std::string& path, int mode) const {
    constexpr std::string_view data = "host:1:floor";
    std::array<char, 1024> made{};
    require_ok(zoo_create(get(), path.c_str(), data.data(), static_cast<int>(data.size()), &ZOO_OPEN_ACL_UNSAFE, mode,
                          made.data(), static_cast<int>(made.size())),
               "create");
    return made.data();
  }
  // Creates the node and all missing nodes above it.
  void create_all(const std::string& path) const {
    for (std::size_t at = path.find('/', 1);; at = path.find('/', at + 1)) {
      const int code =
          zoo_create(get(), path.substr(0, at).c_str(), "", 0, &ZOO_OPEN_ACL_UNSAFE, ZOO_PERSISTENT, nullptr, 0);
      if (code != ZNODEEXISTS) require_ok(code, "create");
      if (at == std::string::npos) return;
    }
  }
  void remove(const std::string& path) const { require_ok(zoo_delete(get(), path.c_str(), -1), "delete"); }

 private:
  static constexpr int session_ms = 30'000;

  struct Close {
    void operator()(zhandle_t* handle) const noexcept {
      (void)zookeeper_close(handle);  // a failure has no remedy
    }
  };
  static std::string connect_string(const rig::UrlText& url) {
    std::string text;
    for (const rig::HostPort& each : rig::hosts_for_proxies(url)) {
      text += (text.empty() ? "" : ",") + each.name + ":" + std::to_string(each.port);
    }
    const std::string& chroot = url.original().path();
    return chroot == "/" ? text : text + chroot;
  }
  static void on_event(zhandle_t* /*handle*/, int type, int state, const char* /*path*/, void* context) {
    auto& self = *static_cast<Session*>(context);
    if (type != ZOO_SESSION_EVENT || state != ZOO_CONNECTED_STATE) return;
    const std::scoped_lock lock(self.mutex_);
    self.connected_ = true;
    self.changed_.notify_all();
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  bool connected_ = false;
  std::unique_ptr<zhandle_t, Close> handle_;
};

// --- The floor: one request after the other --------------------------------------------------------------------------

class ZooKeeperFloor final : public Floor {
 public:
  // in_queue: creates a sequential node below the lock's, lists them, deletes it. Otherwise creates the lock's node,
  // and deletes it.
  ZooKeeperFloor(const rig::UrlText& url, std::string lock, bool in_queue)
      : session_(url), lock_(std::move(lock)), in_queue_(in_queue) {
    session_.create_all(in_queue_ ? lock_ : lock_.substr(0, lock_.rfind('/')));
  }

  void acquire() override {
    own_ = in_queue_ ? session_.create(lock_ + std::string(node_prefix), ZOO_EPHEMERAL_SEQUENTIAL)
                     : session_.create(lock_, ZOO_EPHEMERAL);
    if (!in_queue_ || is_first()) return;
    session_.remove(own_);
    require_free(false);
  }
  void release() override { session_.remove(own_); }

 private:
  // In the form of Curator's names.
  static constexpr std::string_view node_prefix = "/_c_0e1cf9d8-5f6c-4a49-8f0a-1c0f0c3f1b2d-lock-";
  static constexpr std::size_t number_digits = 10;

  [[nodiscard]] bool is_first() const {
    String_vector children{};
    require_ok(zoo_get_children(session_.get(), lock_.c_str(), 0, &children), "get_children");
    const auto number = [](std::string_view path) { return path.substr(path.size() - number_digits); };
    const bool first = std::all_of(children.data, children.data + children.count,
                                   [&](const char* each) { return number(own_) <= number(each); });
    (void)deallocate_String_vector(&children);
    return first;
  }

  Session session_;
  std::string lock_;
  bool in_queue_;
  std::string own_;  // the last node that it created
};

// --- The removal of trees --------------------------------------------------------------------------------------------

// Each node after those below it.
void collect(zhandle_t* handle, const std::string& path, std::vector<std::string>& paths) {
  String_vector children{};
  const int code = zoo_get_children(handle, path.c_str(), 0, &children);
  if (code == ZNONODE) return;
  require_ok(code, "get_children");
  std::vector<std::string> below(children.data, children.data + children.count);
  (void)deallocate_String_vector(&children);
  for (const std::string& each : below) collect(handle, path + "/" + each, paths);
  paths.push_back(path);
}

// The node, if it exists, with all below it. A server that waits for the disk does so once per transaction.
void remove_tree(zhandle_t* handle, const std::string& path) {
  constexpr int most_attempts = 100;
  constexpr std::size_t most_at_once = 1000;
  for (int i = 0; i < most_attempts; ++i) {
    std::vector<std::string> paths;
    collect(handle, path, paths);
    bool complete = true;
    for (std::size_t at = 0; at < paths.size(); at += most_at_once) {
      std::vector<zoo_op_t> operations(std::min(most_at_once, paths.size() - at));
      std::vector<zoo_op_result_t> results(operations.size());
      for (std::size_t k = 0; k < operations.size(); ++k) zoo_delete_op_init(&operations[k], paths[at + k].c_str(), -1);
      const int code = zoo_multi(handle, static_cast<int>(operations.size()), operations.data(), results.data());
      // The server may have removed a container meanwhile, or a client that is closing may have created a node.
      complete = complete && code != ZNONODE && code != ZNOTEMPTY;
      if (complete) require_ok(code, "delete");
    }
    if (complete) return;
  }
  throw std::runtime_error("ZooKeeper: another client keeps creating nodes below " + path);
}

// --- The target ------------------------------------------------------------------------------------------------------

// The default limit of a server for connections from one address. Of these, those left for clients, and for other
// programs on this machine.
constexpr double usual_connections = 60;
constexpr double spare_connections = 20;
constexpr std::array<std::string_view, 4> counted_watches = {
    "zk_sum_node_created_watch_count", "zk_sum_node_deleted_watch_count", "zk_sum_node_changed_watch_count",
    "zk_sum_node_children_watch_count"};

class ZooKeeperTarget final : public ServiceTarget {
 public:
  ZooKeeperTarget(const rig::UrlText& given, const std::string& strategy)
      : ServiceTarget(given, "zookeeper", strategy) {
    const std::string parent = given.parameter("prefix").value_or("/");
    prefix_ = parent + (parent.ends_with('/') ? "" : "/") + own_name();
    set_place("prefix", prefix_);
  }

  void prepare() override;
  [[nodiscard]] std::size_t most_floors() const override { return most_floors_; }
  [[nodiscard]] std::unique_ptr<Floor> floor_at(const rig::UrlText& url, const std::string& name) override;
  [[nodiscard]] std::optional<Operations> operations() override;
  void clean_up() override;

 private:
  // All servers' answers to a four-letter word; empty if one of them does not answer.
  [[nodiscard]] std::vector<std::string> answers(const std::string& word) const;

  std::string prefix_;
  std::size_t most_floors_ = 0;
  double questions_ = 0;  // sent by this target to the servers, which count them as packets
};

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
  info_.crash = loses::unknown;
  info_.failover = loses::nothing;  // a majority of the servers has each grant, and one of them takes over
  const auto mntr = answers("mntr");
  const auto conf = answers("conf");
  double most = usual_connections;
  if (!conf.empty()) most = number_in(conf.front(), "maxClientCnxns", '=').value_or(usual_connections);
  most_floors_ = most == 0 ? 0 : static_cast<std::size_t>(std::max(most - spare_connections, 1.0));
  if (mntr.empty()) return;
  const std::string_view version = value_in(mntr.front(), "zk_version", '\t').value_or("");
  add_setting("version", version.substr(0, version.find_first_not_of("0123456789.")));
  // Only a server that waits for the disk counts this. The lock acquired before was something to write.
  if (const auto syncs = number_in(mntr.front(), "zk_cnt_fsynctime", '\t')) {
    add_setting("forceSync", *syncs > 0 ? "yes" : "no");
    info_.crash = *syncs > 0 ? loses::nothing : loses::latest;
  }
}

std::unique_ptr<Floor> ZooKeeperTarget::floor_at(const rig::UrlText& url, const std::string& name) {
  std::string node = name;
  std::replace(node.begin(), node.end(), '/', '%');
  return std::make_unique<ZooKeeperFloor>(url, prefix_ + "/floor/" + node, info().strategy != "ephemeral");
}

std::optional<Operations> ZooKeeperTarget::operations() {
  const auto all = answers("mntr");
  Operations sum{.carried_out = 0, .wake_ups = 0.0};
  if (all.empty()) return std::nullopt;
  for (const std::string& each : all) {
    const auto received = number_in(each, "zk_packets_received", '\t');
    if (!received) return std::nullopt;  // the word is not whitelisted
    sum.carried_out += *received;
    for (const std::string_view name : counted_watches) add(sum.wake_ups, number_in(each, name, '\t'));
  }
  questions_ += static_cast<double>(all.size());
  sum.carried_out -= questions_;
  return sum;
}

// Client::forget() would need a request per name, and leave the prefix's node and the locks of killed holders.
void ZooKeeperTarget::clean_up() {
  const Session session(given());
  for (const char* kind : {"", ".rw", ".sem"}) remove_tree(session.get(), prefix_ + kind);
}

}  // namespace

std::unique_ptr<ServiceTarget> make_zookeeper_target(const rig::UrlText& url, const std::string& strategy) {
  return std::make_unique<ZooKeeperTarget>(url, strategy);
}

}  // namespace dlock::bench
