// Arbitrary bytes from an etcd member: never a crash, never more memory or output than the bytes justify, and the same
// messages and ends of calls however the bytes are cut into pieces. The first byte says how.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "backends/etcd/wire/grpc.hpp"
#include "backends/etcd/wire/messages.hpp"
#include "backends/etcd/wire/protobuf.hpp"
#include "tests/fuzz/checks.hpp"

namespace {

using dlock::etcd::Grpc;
using dlock::etcd::GrpcStatus;
using dlock::fuzz::require;

struct Heard {
  std::vector<std::string> messages;
  bool ended = false;
  GrpcStatus status;
};

struct Conversation {
  std::map<Grpc::CallId, Heard> calls;
  std::size_t message_bytes = 0;
  std::string problem;
};

constexpr std::size_t preface_and_requests = 1024;
constexpr int code_unavailable = 14;

void note(Grpc& grpc, Conversation& so_far) {
  while (auto event = grpc.next()) {
    require(so_far.calls.contains(event->call));
    Heard& call = so_far.calls[event->call];
    require(!call.ended);
    if (event->message) {
      so_far.message_bytes += event->message->size();
      call.messages.push_back(*std::move(event->message));
    } else {
      call.ended = true;
      call.status = std::move(event->status);
    }
  }
}

// One call that waits for its answer, one that goes on, and one whose end nobody waits for.
Conversation converse(std::string_view bytes, std::size_t piece) {
  Grpc grpc("server:2379", false);
  const Grpc::CallId asked = grpc.begin(dlock::etcd::method_transaction, {{"token", "secret"}});
  grpc.send(asked, "asked", true);
  const Grpc::CallId watching = grpc.begin(dlock::etcd::method_watch, {});
  grpc.send(watching, "created", false);
  const Grpc::CallId cancelled = grpc.begin(dlock::etcd::method_status, {});
  grpc.send(cancelled, "asked", true);
  std::string out;
  grpc.take_output(out);
  grpc.cancel(cancelled);

  Conversation conversation;
  conversation.calls = {{asked, {}}, {watching, {}}};
  std::string_view rest = bytes;
  while (!rest.empty() && grpc.receive(rest.substr(0, piece))) {
    rest.remove_prefix(rest.size() < piece ? rest.size() : piece);
    note(grpc, conversation);
  }
  grpc.take_output(out);
  note(grpc, conversation);
  require(rest.empty() || !grpc.problem().empty());
  require(conversation.message_bytes <= bytes.size());
  // An answer to each ping; to each stream that breaks the rules, a few bytes more than it took.
  require(out.size() <= preface_and_requests + 2 * bytes.size());
  std::size_t under_way = 0;
  for (const auto& [id, call] : conversation.calls) {
    if (!call.ended) ++under_way;
    if (call.status.not_carried_out) require(call.status.code == code_unavailable);
  }
  require(grpc.under_way() == under_way);
  require((grpc.begin("/", {}) == 0) == (grpc.closing() || !grpc.problem().empty()));
  conversation.problem = grpc.problem();
  return conversation;
}

// Where a rule is broken, one may see it and the other not: nghttp2 counts the pieces of CONTINUATION frames' heads,
// and passes over some frames of a call once its own RST_STREAM is on the way. What both took for an answer is the
// same.
void compare(const Conversation& a, const Conversation& b) {
  const bool whole = a.problem.empty() && b.problem.empty();
  for (const auto& [id, call] : a.calls) {
    const Heard& same = b.calls.at(id);
    const std::size_t common = std::min(call.messages.size(), same.messages.size());
    require(std::equal(call.messages.begin(), call.messages.begin() + static_cast<std::ptrdiff_t>(common),
                       same.messages.begin()));
    if (whole) require(call.messages.size() == same.messages.size() && call.ended == same.ended);
    if (!call.ended || !same.ended) continue;
    require(call.status.code == same.status.code);
    if (call.status.code == code_unavailable) continue;  // the first of several reasons
    require(call.status.message == same.status.message);
  }
}

// Whoever reads a message must cope with every message.
void interpret(std::string_view message) {
  dlock::etcd::MessageReader reader(message);
  std::size_t bytes = 0;
  for (std::size_t fields = 0; reader.next(); ++fields) {
    require(reader.field() != 0 && fields < message.size());
    const bool numeric = fields % 2 != 0;
    if (numeric) {
      (void)reader.number();
    } else {
      bytes += reader.bytes().size();
    }
  }
  require(bytes <= message.size());

  dlock::etcd::Transaction asked;
  asked.put("key", "value", 1).read({.range = {"key"}}).else_read({.range = {"key"}});
  const auto answer = dlock::etcd::read_transaction(message, asked.steps());
  if (answer.ok()) require(answer.value().steps.size() == (answer.value().held ? 2 : 1));
  const auto answers = dlock::etcd::read_together(message, {asked, asked});
  require(!answers.ok() || answers.value().size() == 2);
  (void)dlock::etcd::read_lease(message);
  const auto watch = dlock::etcd::read_watch(message);
  require(!watch.ok() || watch.value().events <= message.size());
  (void)dlock::etcd::read_authenticate(message);
  (void)dlock::etcd::read_status(message);
  (void)dlock::etcd::read_alarms(message);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string_view bytes = dlock::fuzz::as_text(data + 1, size - 1);
  const Conversation whole = converse(bytes, bytes.size() + 1);
  compare(whole, converse(bytes, static_cast<std::size_t>(data[0]) % 32 + 1));
  for (const auto& [id, call] : whole.calls) {
    for (const std::string& message : call.messages) interpret(message);
  }
  interpret(bytes);
  return 0;
}
