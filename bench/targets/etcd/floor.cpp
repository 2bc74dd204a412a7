#include "bench/targets/etcd/floor.hpp"

#include <exception>
#include <stdexcept>
#include <string_view>
#include <utility>

#include "backends/etcd/wire/protobuf.hpp"

namespace dlock::bench {

namespace {

using etcd::MessageReader;
using etcd::MessageWriter;

constexpr std::uint64_t lease_seconds = 3600;
constexpr std::string_view data = "host:1:floor";

// Compare: that the key was made by this revision; 0: that there is none.
std::string made_by(std::string_view key, std::uint64_t revision) {
  constexpr std::uint64_t create_revision = 1;
  return MessageWriter().number(2, create_revision).bytes(3, key).number(5, revision).take();
}

struct Outcome {
  bool succeeded = false;
  std::uint64_t revision = 0;
};

Outcome read_outcome(std::string_view answer) {
  Outcome outcome;
  MessageReader reader(answer);
  bool broken = false;
  while (reader.next()) {
    if (reader.field() == 2) outcome.succeeded = reader.number() != 0;
    if (reader.field() != 1) continue;
    MessageReader header(reader.bytes());
    while (header.next()) {
      if (header.field() == 3) outcome.revision = header.number();
    }
    broken = broken || header.broken();
  }
  if (broken || reader.broken()) throw std::runtime_error("etcd: the answer is not a message");
  return outcome;
}

Outcome transact(EtcdConnection& connection, const std::string& compare, const std::string& operation) {
  const std::string request = MessageWriter().message(1, compare).message(2, operation).take();
  return read_outcome(connection.call("/etcdserverpb.KV/Txn", request));
}

std::uint64_t new_lease(EtcdConnection& connection) {
  const std::string request = MessageWriter().number(1, lease_seconds).take();
  const std::string answer = connection.call("/etcdserverpb.Lease/LeaseGrant", request);
  MessageReader reader(answer);
  std::uint64_t id = 0;
  while (reader.next()) {
    if (reader.field() == 2) id = reader.number();
  }
  if (reader.broken() || id == 0) throw std::runtime_error("etcd: the answer has no lease");
  return id;
}

}  // namespace

EtcdFloor::EtcdFloor(const rig::UrlText& url, std::string key)
    : connection_(url), key_(std::move(key)), lease_(new_lease(connection_)) {}

EtcdFloor::~EtcdFloor() {
  try {
    (void)connection_.call("/etcdserverpb.Lease/LeaseRevoke", MessageWriter().number(1, lease_).take());
  } catch (const std::exception&) {
    // It ends by itself.
  }
}

void EtcdFloor::acquire() {
  const std::string put = MessageWriter().bytes(1, key_).bytes(2, data).number(3, lease_).take();
  const Outcome outcome = transact(connection_, made_by(key_, 0), MessageWriter().message(2, put).take());
  require_free(outcome.succeeded);
  revision_ = outcome.revision;
}

void EtcdFloor::release() {
  require_held(revision_ != 0);  // 0 would be true of a key that is not there
  const std::string deletion = MessageWriter().bytes(1, key_).take();
  const std::string compare = made_by(key_, std::exchange(revision_, 0));
  require_held(transact(connection_, compare, MessageWriter().message(3, deletion).take()).succeeded);
}

}  // namespace dlock::bench
