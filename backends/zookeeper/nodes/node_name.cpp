#include "backends/zookeeper/nodes/node_name.hpp"

#include <algorithm>
#include <array>
#include <cstddef>

#include "backends/common/kinds.hpp"
#include "util/number.hpp"
#include "util/percent.hpp"

namespace dlock::zookeeper {

namespace {

std::uint8_t byte_at(std::string_view text, std::size_t at) {
  return static_cast<std::uint8_t>(text[at]);
}

// The length of the code point that starts with this byte; 1 if it is not UTF-8.
std::size_t code_point_length(std::uint8_t lead) {
  return lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : lead >= 0xc0 ? 2 : 1;
}

// A server checks a path as Java's 16-bit characters and refuses controls, U+D800..U+F8FF and U+FFF0..U+FFFF, and so
// also everything beyond U+FFFF.
bool is_refused(std::string_view code_point) {
  const std::uint8_t lead = byte_at(code_point, 0);
  switch (code_point.size()) {
    case 1:
      return lead < 0x20 || lead >= 0x7f;
    case 2:
      return lead == 0xc2 && byte_at(code_point, 1) < 0xa0;
    case 3: {
      const unsigned value =
          (lead & 0x0fU) << 12U | (byte_at(code_point, 1) & 0x3fU) << 6U | (byte_at(code_point, 2) & 0x3fU);
      return (value >= 0xd800 && value <= 0xf8ff) || value >= 0xfff0;
    }
    default:
      return true;
  }
}

constexpr unsigned bit(LockKind kind) {
  return 1U << static_cast<unsigned>(kind);
}
constexpr unsigned locks = bit(LockKind::lock) | bit(LockKind::election);

struct Marker {
  std::string_view text;
  bool at_start;
  std::string_view layout;                  // for people
  unsigned ours = 0;                        // the kinds of locks that have it in a layout of ours
  std::optional<Layout> of = std::nullopt;  // which; nullopt: in all of them
  Mode mode = Mode::exclusive;
};

constexpr std::string_view permit_marker = "-permit-of-";  // <permits>-<number>
constexpr std::string_view recipe_marker = "x-";           // <session>-<number>

// The first that fits counts. Curator's marker comes before the plain one, which is a part of it. kazoo's Lock and its
// WriteLock are the same, so its readers belong to both.
constexpr std::array markers = {
    Marker{"-lock-", false, "Curator's and go-zk's (layout=curator)", locks, Layout::curator},
    Marker{"__lock__", false, "kazoo's (layout=kazoo)", locks | bit(LockKind::read_write), Layout::kazoo},
    Marker{"__rlock__", false, "kazoo's (layout=kazoo)", locks | bit(LockKind::read_write), Layout::kazoo,
           Mode::shared},
    Marker{"__READ__", false, "Curator's read-write lock", bit(LockKind::read_write), Layout::curator, Mode::shared},
    Marker{"__WRIT__", false, "Curator's read-write lock", bit(LockKind::read_write), Layout::curator},
    Marker{permit_marker, false, "dlock's semaphore", bit(LockKind::semaphore)},
    Marker{"-latch-", false, "Curator's leader latch"},
    Marker{"-lease-", false, "Curator's semaphore"},
    Marker{"lock-", true, "of nodes called lock-<number>"},
    Marker{"read-", true, "of nodes called read-<number> and write-<number>"},
    Marker{"write-", true, "of nodes called read-<number> and write-<number>"},
    Marker{"semaphore-", true, "of nodes called semaphore-<number>"},
    Marker{recipe_marker, true, "of ZooKeeper's lock recipe (x-<session>-<number>)"},
};

// Removes "<permits>-" from the front.
bool take_permits(std::string_view& text, std::uint32_t& permits) noexcept {
  const std::size_t end = text.find('-');
  if (end == std::string_view::npos) return false;
  permits = util::parse_number<std::uint32_t>(text.substr(0, end)).value_or(0);
  text.remove_prefix(end + 1);
  return permits != 0;
}

// Parses the part after the marker into the node.
bool fits(const Marker& marker, std::string_view name, QueueNode& node) noexcept {
  const std::size_t at = name.rfind(marker.text, marker.at_start ? 0 : std::string_view::npos);
  if (at == std::string_view::npos) return false;
  std::string_view rest = name.substr(at + marker.text.size());
  if (marker.text == permit_marker && !take_permits(rest, node.permits)) return false;
  if (marker.text == recipe_marker) rest.remove_prefix(rest.rfind('-') + 1);
  // The server writes at least ten characters, and a sign if the number overflowed.
  const auto sequence = rest.size() < 10 ? std::nullopt : util::parse_number<std::int64_t>(rest);
  node.sequence = sequence.value_or(0);
  return sequence.has_value();
}

}  // namespace

// --- Paths -----------------------------------------------------------------------------------------------------------

std::string encode_name(std::string_view name) {
  std::string out;
  out.reserve(name.size());
  const bool dots = name == "." || name == "..";
  for (std::size_t at = 0; at < name.size();) {
    const std::string_view code_point = name.substr(at, code_point_length(byte_at(name, at)));
    if (dots || code_point == "/" || code_point == "%" || is_refused(code_point)) {
      out += util::percent_encode(code_point, [](unsigned char) { return false; });
    } else {
      out += code_point;
    }
    at += code_point.size();
  }
  return out;
}

std::optional<std::string> decode_name(std::string_view component) {
  auto name = util::percent_decode(component);
  if (!name || encode_name(*name) != component) return std::nullopt;
  return name;
}

std::string kind_path(std::string_view prefix, LockKind kind) {
  std::string path(prefix);
  if (!path.empty()) path += common::kind_suffix(kind);
  return path;
}

std::string lock_path(std::string_view prefix, std::string_view name, LockKind kind) {
  std::string path = kind_path(prefix, kind);
  path += '/';
  path += encode_name(name);
  return path;
}

std::string_view last_component(std::string_view path) noexcept {
  const std::size_t slash = path.rfind('/');
  return slash == std::string_view::npos ? path : path.substr(slash + 1);
}

// --- Children of a lock's node ---------------------------------------------------------------------------------------

std::string guid_text(Layout layout, const OwnerId& random) {
  // RFC 4122, version 4.
  const std::uint64_t high = (random.high() & ~std::uint64_t{0xf000}) | 0x4000U;
  const std::uint64_t low = (random.low() & ~(std::uint64_t{3} << 62U)) | std::uint64_t{1} << 63U;
  std::string text = OwnerId(high, low).to_string();
  if (layout == Layout::curator) {
    for (const std::size_t at : {8U, 13U, 18U, 23U}) text.insert(at, 1, '-');
  }
  return text;
}

std::string queue_node_prefix(Layout layout, std::string_view guid, const Claim& claim) {
  std::string name(guid);
  const bool shared = claim.mode == Mode::shared;
  if (claim.kind == LockKind::semaphore) {
    return "_c_" + name + std::string(permit_marker) + std::to_string(claim.permits) + "-";
  }
  if (layout == Layout::kazoo) return name + (shared ? "__rlock__" : "__lock__");
  if (claim.kind != LockKind::read_write) return "_c_" + name + "-lock-";
  return "_c_" + name + (shared ? "-__READ__" : "-__WRIT__");
}

QueueNode parse_queue_node(Layout layout, std::string_view name, LockKind kind) noexcept {
  for (const Marker& marker : markers) {
    QueueNode node{.kind = QueueNode::Kind::member};
    if (!fits(marker, name, node)) continue;
    if ((marker.ours & bit(kind)) != 0 && marker.of.value_or(layout) == layout) {
      if (kind == LockKind::read_write) node.mode = marker.mode;
      return node;
    }
    return {.kind = QueueNode::Kind::foreign, .layout = marker.layout};
  }
  if (std::find(semaphore_children.begin(), semaphore_children.end(), name) != semaphore_children.end()) {
    return {.kind = QueueNode::Kind::semaphore};
  }
  if (name.size() == 32 && name.find_first_not_of("0123456789abcdefABCDEF") == std::string_view::npos) {
    return {.kind = QueueNode::Kind::foreign, .layout = "kazoo's semaphore (32 hexadecimal digits)"};
  }
  // The server writes exactly ten digits. Perhaps not a lock's, but no other program numbers nodes there.
  if (name.size() - (name.find_last_not_of("0123456789") + 1) == 10) {
    return {.kind = QueueNode::Kind::foreign, .layout = "of nodes that the server numbered for an unknown program"};
  }
  return {};
}

}  // namespace dlock::zookeeper
