#include "backends/etcd/etcd_backend.hpp"

#include <algorithm>
#include <utility>

#include "backends/common/refusals.hpp"
#include "backends/etcd/administration/diagnosis.hpp"
#include "backends/etcd/administration/inspection.hpp"
#include "backends/etcd/connection/socket_member.hpp"
#include "backends/etcd/locks/keys.hpp"
#include "util/names.hpp"

namespace dlock::etcd {

EtcdBackend::EtcdBackend(BackendHost& host, Options options, std::chrono::nanoseconds default_lease,
                         MemberFactory members)
    : host_(host),
      options_(std::move(options)),
      default_lease_(default_lease),
      news_(host),
      client_(host.executor(), options_, std::move(members), *this),
      session_(client_, &session_key, *this),
      watches_(client_),
      queue_(host, client_, session_, watches_) {}

EtcdBackend::~EtcdBackend() {
  client_.stop();  // handlers of its calls refer to the other members
}

Capabilities EtcdBackend::capabilities() const noexcept {
  return {
      .backend = options_.tls ? "etcds" : "etcd",
      .strategy = "",
      .scope = Scope::network,
      .lease_kind = LeaseKind::session,
      .fencing = FencingDurability::service,
      .fair = true,
      .wakes_waiters = true,
      .wakes_one = true,
      .counts_waiters = true,
      .read_write_locks = true,
      .semaphores = true,
      .elections = true,
      .can_inspect = true,
      .can_list = true,
      .can_break = true,
      .min_lease = std::chrono::milliseconds(1),
      .max_lease = std::max<std::chrono::nanoseconds>(options_.session_ttl, default_lease_),
  };
}

// --- Locks -----------------------------------------------------------------------------------------------------------

std::optional<Failure> EtcdBackend::problem_with(const std::string& name) const {
  if (!options_.verbatim || !name.starts_with('.')) return std::nullopt;
  return Failure{
      errc::invalid_argument,
      "lock name " + util::quoted(name) + ": with names=verbatim, keys that begin with a '.' are reserved for dlock"};
}

std::unique_ptr<Contention> EtcdBackend::contend(const LockRequest& request, GrantSink& sink) {
  auto problem = problem_with(request.name);
  if (!problem) {
    problem = common::problem_with_lease(request.lease, default_lease_, options_.session_ttl, "session_ttl");
  }
  if (problem) return common::refuse(sink, *std::move(problem));
  if (request.kind != LockKind::election) return queue_.contend(request, sink);
  LockRequest with_value = request;
  with_value.holder = holder_text(request);
  return queue_.contend(with_value, sink);
}

std::unique_ptr<Watch> EtcdBackend::watch(LockKind kind, const std::string& name, std::function<void()> changed) {
  session_.want();  // reports to the observer whether the cluster answers
  return watches_.watch(beginning_with(lock_prefix(options_, kind, name)), kind == LockKind::election,
                        [changed = std::move(changed)](std::int64_t) { changed(); });
}

// --- Administration --------------------------------------------------------------------------------------------------

void EtcdBackend::inspect(LockKind kind, const std::string& name, Handler<LockInfo> done) {
  if (auto problem = problem_with(name)) return done(*std::move(problem));
  etcd::inspect(client_, kind, name, std::move(done));
}

void EtcdBackend::list(LockKind kind, Handler<std::vector<LockInfo>> done) {
  etcd::list(client_, kind, std::move(done));
}

void EtcdBackend::break_lock(LockKind kind, const std::string& name, Handler<bool> done) {
  if (auto problem = problem_with(name)) return done(*std::move(problem));
  etcd::break_lock(client_, kind, name, std::move(done));
}

void EtcdBackend::diagnose(Handler<std::vector<Finding>> done) {
  session_.want();
  etcd::diagnose(client_, session_, std::move(done));
}

// --- Events ----------------------------------------------------------------------------------------------------------

void EtcdBackend::client_ready() {
  const Lifetime::Watch life = lifetime_.watch();
  session_.client_ready();
  if (!life.over()) watches_.client_ready();
}

void EtcdBackend::client_answered() {
  reached_ = true;
  connection_.connected();
}

void EtcdBackend::client_down(const Failure& why, bool in_order) {
  watches_.client_down();
  session_.client_down(why, in_order);
}

void EtcdBackend::session_suspended(const Failure& why) {
  if (reached_) connection_.broken(why);
  queue_.session_suspended(why);
}

void EtcdBackend::session_lost(const Failure& why) {
  connection_.broken(why);
  queue_.session_lost(why);
}

void EtcdBackend::cluster_changed() {
  host_.warn({.name = "",
              .reason = {errc::protocol, options_.endpoint() +
                                             ": a different etcd cluster answers now, or one that was restored from a "
                                             "snapshot; fencing tokens may be smaller than earlier ones"}});
}

std::unique_ptr<Backend> make_etcd_backend(BackendHost& host, const BackendConfig& config) {
  Options options = parse_options(config);
  std::shared_ptr<const common::TlsContext> tls;
  if (options.tls) tls = common::make_tls_context(*options.tls, common::warn_at(host));
  if (options.password_file) options.password_file->check();
  return std::make_unique<EtcdBackend>(host, std::move(options), config.lease, socket_members(std::move(tls)));
}

}  // namespace dlock::etcd
