// etcd://, etcds://
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <cstdint>
#include <exception>
#include <stdexcept>
#include <utility>

#include "backends/common/tls.hpp"
#include "backends/etcd/wire/grpc.hpp"
#include "backends/etcd/wire/protobuf.hpp"
#include "bench/targets/service_target.hpp"
#include "torture/rig/detour.hpp"
#include "torture/rig/network.hpp"
#include "util/unique_fd.hpp"

namespace dlock::bench {

namespace {

using etcd::MessageReader;
using etcd::MessageWriter;

[[noreturn]] void fail(const std::string& what) {
  throw std::runtime_error("etcd: " + what);
}

// Calls `use` for each field of that number, while the reader has its value.
template <class Use>
void for_each_field(std::string_view message, std::uint32_t field, const Use& use) {
  MessageReader reader(message);
  while (reader.next()) {
    if (reader.field() == field) use(reader);
  }
  if (reader.broken()) fail("the answer is not a message");
}

// The value of the field; 0 or empty if the message has none.
std::uint64_t number_in(std::string_view message, std::uint32_t field) {
  std::uint64_t value = 0;
  for_each_field(message, field, [&](MessageReader& reader) { value = reader.number(); });
  return value;
}
std::string_view bytes_in(std::string_view message, std::uint32_t field) {
  std::string_view value;
  for_each_field(message, field, [&](MessageReader& reader) { value = reader.bytes(); });
  return value;
}

// A connection of a simple program with blocking calls.
class Connection {
 public:
  // Connects to the first host that answers, as the user in the URL. Throws std::runtime_error if none answers, or the
  // user is refused.
  explicit Connection(const rig::UrlText& url);

  // Sends the request and waits for the answer. Throws std::runtime_error for a refusal, or if the connection breaks.
  [[nodiscard]] std::string call(std::string_view path, std::string_view request);

 private:
  void shake_hands(const std::string& host, const rig::UrlText& url);
  void flush();
  void receive();
  [[nodiscard]] std::string read_some() const;
  void write_all(std::string_view bytes) const;

  util::UniqueFd socket_;
  std::unique_ptr<common::TlsFilter> tls_;  // none: plain text
  std::unique_ptr<etcd::Grpc> grpc_;
  etcd::Grpc::Metadata metadata_ = {{"hasleader", "true"}};
};

Connection::Connection(const rig::UrlText& url) {
  const bool secure = url.original().scheme() == "etcds";
  std::string problem;
  rig::HostPort reached{};
  for (const rig::HostPort& each : url.hosts({.name = "localhost", .port = 2379})) {
    try {
      socket_ = rig::connect_to(each, answer_limit);
      reached = each;
      break;
    } catch (const std::runtime_error& error) {
      problem = error.what();
    }
  }
  if (!socket_) fail(problem);
  if (secure) shake_hands(reached.name, url);
  const bool bare = reached.name.find(':') == std::string::npos;
  grpc_ = std::make_unique<etcd::Grpc>(
      (bare ? reached.name : "[" + reached.name + "]") + ":" + std::to_string(reached.port), secure);
  const std::string user = url.original().user().value_or("");
  if (user.empty()) return;
  const std::string answer = call("/etcdserverpb.Auth/Authenticate",
                                  MessageWriter().bytes(1, user).bytes(2, url.password().value_or("")).take());
  const std::string_view token = bytes_in(answer, 2);
  if (token.empty()) fail("the answer to the login has no token");
  metadata_.emplace_back("token", token);
}

void Connection::shake_hands(const std::string& host, const rig::UrlText& url) {
  const auto file = [&](const char* name) { return url.parameter(name).value_or(""); };
  const auto context = common::make_tls_context(
      {.ca_file = file("tls_ca"), .cert_file = file("tls_cert"), .key_file = file("tls_key"), .protocol = "h2"});
  tls_ = context->filter(host);
  std::string plain;
  for (bool done = false; !done;) {
    done = tls_->handshake();
    std::string output;
    tls_->take_output(output);
    write_all(output);
    if (tls_->failure().code || (!done && !tls_->decrypt(read_some(), plain))) fail("TLS: " + tls_->failure().detail);
  }
}

void Connection::write_all(std::string_view bytes) const {
  while (!bytes.empty()) {
    const ssize_t n = ::send(socket_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) fail("the connection breaks");
    bytes.remove_prefix(static_cast<std::size_t>(n));
  }
}

std::string Connection::read_some() const {
  std::array<char, 16384> bytes;
  for (;;) {
    const ssize_t n = ::recv(socket_.get(), bytes.data(), bytes.size(), 0);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) fail("the server closes the connection");
    return {bytes.data(), static_cast<std::size_t>(n)};
  }
}

void Connection::flush() {
  std::string output;
  grpc_->take_output(output);
  if (output.empty()) return;
  if (tls_) {
    if (!tls_->encrypt(output)) fail("TLS: " + tls_->failure().detail);
    output.clear();
    tls_->take_output(output);
  }
  write_all(output);
}

void Connection::receive() {
  std::string bytes = read_some();
  if (tls_) {
    std::string plain;
    if (!tls_->decrypt(bytes, plain)) fail("TLS: " + tls_->failure().detail);
    bytes = std::move(plain);
  }
  if (!grpc_->receive(bytes)) fail(grpc_->problem());
}

std::string Connection::call(std::string_view path, std::string_view request) {
  const auto id = grpc_->begin(path, metadata_);
  if (id == 0) fail("the server closes the connection");
  grpc_->send(id, request, true);
  std::string answer;
  for (;;) {
    flush();
    receive();
    while (std::optional<etcd::Grpc::Event> event = grpc_->next()) {
      if (event->call != id) continue;
      if (!event->message && event->status.code != 0) fail(event->status.message);
      if (!event->message) return answer;
      answer = std::move(*event->message);
    }
  }
}

// A lock by hand: two transactions, one after the other.
class EtcdFloor final : public Floor {
 public:
  // Grants itself a lease, longer than any measurement.
  EtcdFloor(const rig::UrlText& url, std::string key) : connection_(url), key_(std::move(key)) {
    const std::string answer =
        connection_.call("/etcdserverpb.Lease/LeaseGrant", MessageWriter().number(1, lease_seconds).take());
    lease_ = number_in(answer, 2);
    if (lease_ == 0) fail("the answer has no lease");
  }
  ~EtcdFloor() override {
    try {
      (void)connection_.call("/etcdserverpb.Lease/LeaseRevoke", MessageWriter().number(1, lease_).take());
    } catch (const std::exception&) {
      // The lease expires.
    }
  }

  // Creates the key if it does not exist.
  void acquire() override {
    const std::string put = MessageWriter().bytes(1, key_).bytes(2, "host:1:floor").number(3, lease_).take();
    const std::uint64_t revision = transact(0, MessageWriter().message(2, put).take());
    require_free(revision != 0);
    revision_ = revision;
  }
  // Deletes the key if it is unchanged.
  void release() override {
    require_held(revision_ != 0);  // 0 would match a missing key
    const std::string deletion = MessageWriter().bytes(1, key_).take();
    require_held(transact(std::exchange(revision_, 0), MessageWriter().message(3, deletion).take()) != 0);
  }

 private:
  static constexpr std::uint64_t lease_seconds = 3600;

  // Carries out the operation if this revision created the key; 0: if it does not exist. Returns the new revision; 0:
  // it was not carried out.
  std::uint64_t transact(std::uint64_t created, const std::string& operation) {
    constexpr std::uint64_t create_revision = 1;
    const std::string compare = MessageWriter().number(2, create_revision).bytes(3, key_).number(5, created).take();
    const std::string answer =
        connection_.call("/etcdserverpb.KV/Txn", MessageWriter().message(1, compare).message(2, operation).take());
    return number_in(answer, 2) != 0 ? number_in(bytes_in(answer, 1), 3) : 0;
  }

  Connection connection_;
  std::string key_;
  std::uint64_t lease_ = 0;
  std::uint64_t revision_ = 0;  // which created the key
};

class EtcdTarget final : public ServiceTarget {
 public:
  explicit EtcdTarget(const rig::UrlText& given)
      : ServiceTarget(given, "etcd", ""), start_(given.parameter("prefix").value_or("") + own_name()) {
    set_place("prefix", start_ + "/");
    info_.crash = loses::nothing;
    info_.failover = loses::nothing;
  }

  void prepare() override;
  [[nodiscard]] std::unique_ptr<Floor> floor_at(const rig::UrlText& url, const std::string& name) override {
    return std::make_unique<EtcdFloor>(url, start_ + "/floor/" + name);
  }
  [[nodiscard]] std::optional<Operations> operations() override;
  void clean_up() override;

 private:
  std::string start_;  // the prefix of all keys
};

// Leaves out what the user may not read.
void EtcdTarget::prepare() {
  try {
    Connection connection(given());
    add_setting("version", bytes_in(connection.call("/etcdserverpb.Maintenance/Status", ""), 2));
    std::size_t members = 0;
    for_each_field(connection.call("/etcdserverpb.Cluster/MemberList", ""), 2, [&](MessageReader&) { ++members; });
    add_setting("members", std::to_string(members));
  } catch (const std::exception&) {
    // The user has no right to this.
  }
}

// Without TLS, servers give metrics to any client.
std::optional<Operations> EtcdTarget::operations() {
  Operations sum{.carried_out = 0, .wake_ups = 0.0};
  const std::vector<rig::HostPort> hosts = rig::hosts_for_proxies(given());
  if (hosts.empty()) return std::nullopt;
  try {
    for (const rig::HostPort& each : hosts) {
      const std::string text = rig::ask(each, "GET /metrics HTTP/1.0\r\n\r\n", answer_limit);
      const auto received = metric_sum(text, "grpc_server_msg_received_total");
      if (!received) return std::nullopt;
      sum.carried_out += *received;
      add(sum.wake_ups, metric_sum(text, "etcd_debugging_mvcc_events_total"));
    }
  } catch (const std::exception&) {
    return std::nullopt;
  }
  return sum;
}

// Keys are removed with their sessions, but a killed holder's session lasts for some time. The backend remembers no
// names that Client::forget() could remove.
void EtcdTarget::clean_up() {
  // The next byte of a key is the separator before a name, or starts the suffix of a kind: "/", ".rw/".
  static_assert('.' + 1 == '/' && '/' + 1 == '0');
  const std::string range = MessageWriter().bytes(1, start_ + ".").bytes(2, start_ + "0").take();
  (void)Connection(given()).call("/etcdserverpb.KV/DeleteRange", range);
}

}  // namespace

std::unique_ptr<ServiceTarget> make_etcd_target(const rig::UrlText& url, const std::string& /*strategy*/) {
  return std::make_unique<EtcdTarget>(url);
}

}  // namespace dlock::bench
