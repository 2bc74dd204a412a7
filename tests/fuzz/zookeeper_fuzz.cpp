// Names of locks as nodes, names of nodes that anybody made, and arbitrary answers of servers to srvr.
//
// A node's name is one component of a path that ZooKeeper takes, read back as it was written; what is a member of the
// queue is one in its own layout alone. Findings about servers can be shown, whatever those say.
#include <string>
#include <string_view>
#include <vector>

#include "backends/zookeeper/administration/server_report.hpp"
#include "backends/zookeeper/nodes/node_name.hpp"
#include "tests/fuzz/checks.hpp"
#include "util/names.hpp"

namespace {

using dlock::LockKind;
using dlock::fuzz::require;
using dlock::zookeeper::Layout;
using dlock::zookeeper::QueueNode;

void check_encoding(std::string_view name) {
  const std::string component = dlock::zookeeper::encode_name(name);
  require(component != "." && component != ".." && component.find('/') == std::string::npos);
  for (const char c : component) require(static_cast<unsigned char>(c) >= 0x20 && c != 0x7f);
  require(dlock::zookeeper::decode_name(component) == name);
  const std::string path = dlock::zookeeper::lock_path("/prefix", name);
  require(dlock::zookeeper::last_component(path) == component);
}

void check_member(std::string_view node, LockKind kind) {
  const QueueNode curator = dlock::zookeeper::parse_queue_node(Layout::curator, node, kind);
  const QueueNode kazoo = dlock::zookeeper::parse_queue_node(Layout::kazoo, node, kind);
  const bool one_layout = kind == LockKind::semaphore;  // which is the same in both
  require(one_layout || curator.kind != QueueNode::Kind::member || kazoo.kind == QueueNode::Kind::foreign);
  require(one_layout || kazoo.kind != QueueNode::Kind::member || curator.kind == QueueNode::Kind::foreign);
  require(!one_layout || curator.kind == kazoo.kind);
  require((curator.kind == QueueNode::Kind::unknown) == (kazoo.kind == QueueNode::Kind::unknown));
  require(curator.kind != QueueNode::Kind::foreign || !curator.layout.empty());
  require(curator.permits > 0);
}

// Cuts what is before the next zero byte.
std::string take_answer(std::string_view& text) {
  const std::string_view answer = text.substr(0, text.find('\0'));
  text.remove_prefix(answer.size() < text.size() ? answer.size() + 1 : answer.size());
  return std::string(answer);
}

void require_showable(std::string_view text) {
  for (const char c : text) require(static_cast<unsigned char>(c) >= 0x20 && c != 0x7f);
  require(text.size() < 1024);
}

void check_answers(std::string_view text) {
  std::vector<dlock::zookeeper::ServerReport> reports;
  while (!text.empty() && reports.size() < 3) {
    reports.push_back({.host = {.name = "h", .port = 2181}, .srvr = take_answer(text)});
  }
  for (const dlock::Finding& finding : dlock::zookeeper::judge(reports)) {
    require_showable(finding.check);
    require_showable(finding.message);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text = dlock::fuzz::as_text(data, size);
  if (!dlock::util::problem_with_name(text)) check_encoding(text);
  const auto name = dlock::zookeeper::decode_name(text);
  if (name) require(dlock::zookeeper::encode_name(*name) == text);
  for (const LockKind kind : {LockKind::lock, LockKind::read_write, LockKind::semaphore}) check_member(text, kind);
  check_answers(text);
  return 0;
}
