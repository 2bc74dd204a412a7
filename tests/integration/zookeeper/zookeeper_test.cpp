#include "zookeeper/zookeeper_test.hpp"

#include <algorithm>
#include <cstdint>

namespace dlock::test {

std::vector<std::string> Tree::queue(const std::string& name) {
  auto nodes = zk.children(path(name)).value_or(std::vector<std::string>());
  const auto number = [](const std::string& node) -> std::int64_t {
    const auto curator = zookeeper::parse_queue_node(zookeeper::Layout::curator, node);
    if (curator.kind == zookeeper::QueueNode::Kind::member) return curator.sequence;
    return zookeeper::parse_queue_node(zookeeper::Layout::kazoo, node).sequence;
  };
  std::stable_sort(nodes.begin(), nodes.end(), [&](const auto& a, const auto& b) { return number(a) < number(b); });
  return nodes;
}

std::optional<std::string> Tree::holder_path(const std::string& name) {
  const auto node = zk.get(path(name));
  if (!node) return std::nullopt;
  if (node->owner != 0) return path(name);
  const auto nodes = queue(name);
  if (nodes.empty()) return std::nullopt;
  return path(name) + "/" + nodes.front();
}

std::optional<ZooKeeperClient::Node> Tree::holder(const std::string& name) {
  const auto at = holder_path(name);
  return at ? zk.get(*at) : std::nullopt;
}

std::string Tree::add_foreign(const std::string& name, const std::string& node, ZooKeeperClient::Kind kind) {
  zk.create_all(path(name));
  return zk.create(path(name) + "/" + node, "elsewhere", kind);
}

std::size_t Tree::residue(const std::string& name, LockKind kind) {
  const auto node = zk.get(path(name, kind));
  if (!node) return 0;
  return (node->owner != 0 ? 1U : 0U) + zk.children(path(name, kind)).value_or(std::vector<std::string>()).size();
}

void Tree::await_residue(const std::string& name, std::size_t count, LockKind kind) {
  await("not so many are at " + name, [&] { return residue(name, kind) == count; });
}

void Tree::remove_all() {
  const auto top = zk.children("/").value();
  for (const std::string& each : top) {
    if (each != "zookeeper") zk.remove_all("/" + each);
  }
}

}  // namespace dlock::test
