#include "bench/targets/zookeeper/floor.hpp"

#include <zookeeper/zookeeper.h>

#include <algorithm>
#include <array>
#include <stdexcept>
#include <string_view>
#include <utility>

namespace dlock::bench {

namespace {

// As Curator calls them.
constexpr std::string_view node_prefix = "/_c_0e1cf9d8-5f6c-4a49-8f0a-1c0f0c3f1b2d-lock-";
constexpr std::string_view data = "host:1:floor";
constexpr std::size_t number_digits = 10;

// The path of the new node.
std::string create(zhandle_t* handle, const std::string& path, int mode) {
  std::array<char, 1024> made{};
  require_ok(zoo_create(handle, path.c_str(), data.data(), static_cast<int>(data.size()), &ZOO_OPEN_ACL_UNSAFE, mode,
                        made.data(), static_cast<int>(made.size())),
             "create");
  return made.data();
}

}  // namespace

ZooKeeperQueueFloor::ZooKeeperQueueFloor(const rig::UrlText& url, std::string lock)
    : session_(url), lock_(std::move(lock)) {
  session_.make(lock_);
}

void ZooKeeperQueueFloor::acquire() {
  std::string node = create(session_.get(), lock_ + std::string(node_prefix), ZOO_EPHEMERAL_SEQUENTIAL);
  String_vector children{};
  require_ok(zoo_get_children(session_.get(), lock_.c_str(), 0, &children), "get_children");
  const auto number = [](std::string_view path) { return path.substr(path.size() - number_digits); };
  const bool first = std::all_of(children.data, children.data + children.count,
                                 [&](const char* each) { return number(node) <= number(each); });
  (void)deallocate_String_vector(&children);
  if (!first) require_ok(zoo_delete(session_.get(), node.c_str(), -1), "delete");
  require_free(first);
  own_ = std::move(node);
}

void ZooKeeperQueueFloor::release() {
  require_ok(zoo_delete(session_.get(), own_.c_str(), -1), "delete");
}

ZooKeeperNodeFloor::ZooKeeperNodeFloor(const rig::UrlText& url, const std::string& parent, const std::string& name)
    : session_(url), lock_(parent + "/" + name) {
  session_.make(parent);
}

void ZooKeeperNodeFloor::acquire() {
  (void)create(session_.get(), lock_, ZOO_EPHEMERAL);
}

void ZooKeeperNodeFloor::release() {
  require_ok(zoo_delete(session_.get(), lock_.c_str(), -1), "delete");
}

}  // namespace dlock::bench
