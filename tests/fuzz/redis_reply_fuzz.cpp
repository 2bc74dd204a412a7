// Arbitrary bytes from a server: never a crash, never more memory than the limits allow, and the same replies however
// the bytes are cut into pieces.
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "backends/redis/cluster/slot_map.hpp"
#include "backends/redis/connection/redirection.hpp"
#include "backends/redis/connection/reply.hpp"
#include "backends/redis/connection/server_error.hpp"
#include "backends/redis/connection/server_info.hpp"
#include "backends/redis/hash_slot.hpp"
#include "backends/redis/requests/answers.hpp"
#include "tests/fuzz/checks.hpp"

namespace {

using dlock::fuzz::require;
using dlock::redis::Reply;
using dlock::redis::ReplyLimits;
using dlock::redis::ReplyReader;

constexpr ReplyLimits limits{.bytes = 4096, .elements = 64, .line = 1024};

struct Size {
  std::size_t bytes = 0;
  std::size_t elements = 0;
};

void add(const Reply& reply, Size& size) {
  size.bytes += reply.text.size();
  size.elements += reply.elements.size();
  for (const Reply& element : reply.elements) add(element, size);
}

bool same(const Reply& a, const Reply& b) {
  if (a.type != b.type || a.integer != b.integer || a.text != b.text || a.elements.size() != b.elements.size()) {
    return false;
  }
  for (std::size_t i = 0; i < a.elements.size(); ++i) {
    if (!same(a.elements[i], b.elements[i])) return false;
  }
  return true;
}

std::vector<Reply> read(std::string_view bytes, std::size_t piece) {
  ReplyReader reader(limits);
  std::vector<Reply> replies;
  while (!bytes.empty() && reader.problem().empty()) {
    reader.feed(bytes.substr(0, piece));
    bytes.remove_prefix(bytes.size() < piece ? bytes.size() : piece);
    while (auto reply = reader.next()) replies.push_back(*std::move(reply));
  }
  return replies;
}

// Whoever reads a reply must cope with every reply.
void interpret(const Reply& reply) {
  auto acquire = dlock::redis::read_acquire(reply);
  require(!acquire.ok() || !acquire.value().granted || acquire.value().token.value() != 0);
  (void)dlock::redis::read_renew(reply);
  (void)dlock::redis::read_forget(reply);
  (void)dlock::redis::read_release(reply);
  (void)dlock::redis::read_inspect(reply, "name");
  (void)dlock::redis::read_number(reply);
  (void)dlock::redis::to_failure(reply.text);
  (void)dlock::redis::eviction_danger(reply.text);
  const dlock::common::Host asked{.name = "asked", .port = 1};
  const auto ranges = dlock::redis::read_slots(reply, asked);
  std::size_t sum = 0;
  for (const auto& range : ranges.ok() ? ranges.value() : std::vector<dlock::redis::SlotRange>{}) {
    require(range.first <= range.last && range.last < dlock::redis::slots && range.master.port != 0);
    sum += static_cast<std::size_t>(range.last - range.first) + 1;
  }
  require(sum <= dlock::redis::slots);
  const auto to = dlock::redis::read_redirection(reply.text, asked);
  require(!to || (to->slot < dlock::redis::slots && to->to.port != 0 && !to->to.name.empty()));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string_view bytes = dlock::fuzz::as_text(data + 1, size - 1);
  const auto whole = read(bytes, bytes.size() + 1);
  const auto pieces = read(bytes, static_cast<std::size_t>(data[0]) % 32 + 1);
  // Where a limit is exceeded, one may stop a reply earlier than the other.
  for (std::size_t i = 0; i < whole.size() && i < pieces.size(); ++i) require(same(whole[i], pieces[i]));
  for (const Reply& reply : pieces) {
    Size total;
    add(reply, total);
    require(total.bytes <= limits.bytes && total.elements <= limits.elements);
    interpret(reply);
  }
  return 0;
}
