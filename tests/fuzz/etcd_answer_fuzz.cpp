// Whatever an etcd server may send: frames of HTTP/2 in two pieces, messages, and keys that anybody made.
//
// The first byte says what the rest is: 'c' and a byte that says where the pieces are cut, then frames; 'm' and a
// message of Protocol Buffers; 'k' and a key behind the prefix.
#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>

#include "backends/etcd/locks/keys.hpp"
#include "backends/etcd/wire/grpc.hpp"
#include "backends/etcd/wire/messages.hpp"
#include "tests/fuzz/checks.hpp"

namespace {

using dlock::etcd::Grpc;
using dlock::fuzz::require;

// Two calls, one of which is a stream; each ends at most once, and nothing of it follows.
void check_frames(std::string_view text) {
  if (text.empty()) return;
  const std::size_t cut = std::min<std::size_t>(static_cast<unsigned char>(text.front()), text.size() - 1);
  text.remove_prefix(1);
  Grpc grpc("h:2379", false);
  const Grpc::CallId call = grpc.begin("/etcdserverpb.KV/Txn", {{"hasleader", "true"}});
  const Grpc::CallId stream = grpc.begin("/etcdserverpb.Watch/Watch", {{"hasleader", "true"}});
  grpc.send(call, "request", true);
  grpc.send(stream, "request", false);
  std::string out;
  grpc.take_output(out);
  std::unordered_map<Grpc::CallId, bool> ended;
  std::size_t received = 0;
  bool good = true;
  const auto collect = [&] {
    while (const auto event = grpc.next()) {
      require(event->call == call || event->call == stream);
      require(!ended[event->call]);
      ended[event->call] = !event->message;
      if (event->message) received += event->message->size();
    }
  };
  for (const std::string_view piece : {text.substr(0, cut), text.substr(cut)}) {
    good = grpc.receive(piece) && good;
    collect();
    grpc.send(stream, "more", false);
    grpc.take_output(out);
    require(!grpc.next());  // what goes out ends no call that receive() has not told of
  }
  require(received <= text.size());
  require(good || !grpc.problem().empty());
  require(grpc.problem().empty() || grpc.begin("/x", {}) == 0);
  require(grpc.under_way() + static_cast<std::size_t>(ended[call]) + static_cast<std::size_t>(ended[stream]) == 2);
  grpc.cancel(stream);
  require(!grpc.next());
}

void check_messages(std::string_view text) {
  for (const std::size_t steps : {std::size_t{0}, std::size_t{1}, std::size_t{2}}) {
    const auto answer = dlock::etcd::read_transaction(text, steps, 1);
    if (!answer.ok()) continue;
    require(answer.value().steps.size() == (answer.value().held ? steps : 1));
    require(answer.value().header.revision > 0);
  }
  const auto lease = dlock::etcd::read_lease(text);
  require(!lease.ok() || lease.value().id != 0);
  const auto watch = dlock::etcd::read_watch(text);
  require(!watch.ok() || watch.value().events <= text.size());
  const auto token = dlock::etcd::read_authenticate(text);
  require(!token.ok() || !token.value().empty());
  const auto status = dlock::etcd::read_status(text);
  require(!status.ok() || !status.value().version.empty());
  const auto alarms = dlock::etcd::read_alarms(text);
  require(!alarms.ok() || alarms.value().size() <= text.size());
}

// A name that is read out of a key is that of the lock which the key belongs to.
void check_key(std::string_view text) {
  for (const bool verbatim : {false, true}) {
    dlock::etcd::Options options;
    options.verbatim = verbatim;
    for (const dlock::Space space : {dlock::Space::lock, dlock::Space::read_write, dlock::Space::semaphore}) {
      const auto parts = dlock::etcd::parse_key(options, space, text);
      if (!parts) continue;
      require(!parts->name.empty() && parts->permits > 0);
      dlock::LockRequest request;
      request.name = parts->name;
      request.space = space;
      request.mode = parts->mode;
      request.permits = parts->permits;
      const dlock::etcd::Place place = dlock::etcd::place_of(options, request);
      const std::string key = dlock::etcd::kind_prefix(options, space) + std::string(text);
      require(key.starts_with(place.own) && key.size() > place.own.size());
      require(key.find('/', place.own.size()) == std::string::npos);
      (void)dlock::etcd::is_of_lease(key, 1);
    }
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::string_view text = dlock::fuzz::as_text(data, size);
  if (text.empty()) return 0;
  const char what = text.front();
  text.remove_prefix(1);
  if (what == 'c') check_frames(text);
  if (what == 'm') check_messages(text);
  if (what == 'k') check_key(text);
  return 0;
}
