#include "backends/zookeeper/zookeeper_backend.hpp"

#include <algorithm>

#include "backends/zookeeper/connection/c_handle.hpp"

namespace dlock::zookeeper {

using std::chrono::nanoseconds;

namespace {

// How often idle further members are looked for.
constexpr std::chrono::seconds sweep_every{5};

}  // namespace

// Passes reports of a member to the core as those of one client: connection events of the first member only, and each
// warning once.
struct ZookeeperBackend::Member final : BackendHost {
  explicit Member(ZookeeperBackend& of)
      : group(of),
        first(of.members_.empty()),
        last_used(of.host_.executor().now()),
        backend(*this, of.options_, of.default_lease_, of.handles_, of.asker_) {}

  [[nodiscard]] Executor& executor() noexcept override { return group.host_.executor(); }
  void extended(const OwnerId& owner, TimePoint valid_until) override { group.host_.extended(owner, valid_until); }
  void lost(const OwnerId& owner, Failure why) override { group.host_.lost(owner, std::move(why)); }
  void connection(ConnectionEvent event) override {
    group.connection_changed();
    if (first) group.host_.connection(std::move(event));
  }
  void warn(WarningEvent event) override { group.warn(std::move(event)); }
  [[nodiscard]] OwnerId new_owner_id() override { return group.host_.new_owner_id(); }

  ZookeeperBackend& group;
  const bool first;
  bool used = false;  // since the last sweep
  TimePoint last_used;
  SessionLocks backend;
};

ZookeeperBackend::ZookeeperBackend(BackendHost& host, Options options, std::chrono::nanoseconds default_lease,
                                   HandleFactory handles, ServerAsker asker)
    : host_(host),
      options_(std::move(options)),
      default_lease_(default_lease),
      handles_(std::move(handles)),
      asker_(std::move(asker)),
      first_(add_member().backend),
      chroot_(host.executor(), options_, handles_),
      timer_(host.executor()) {}

ZookeeperBackend::~ZookeeperBackend() = default;

ZookeeperBackend::Member& ZookeeperBackend::add_member() {
  return *members_.emplace_back(std::make_unique<Member>(*this));
}

// --- Locks -----------------------------------------------------------------------------------------------------------

std::unique_ptr<Contention> ZookeeperBackend::contend(const LockRequest& request, GrantSink& sink) {
  if (members_.size() == 1 && (options_.sessions == 1 || first_.writes_under_way() < busy_from)) {
    ++calm_;
    return first_.contend(request, sink);
  }
  Member& member = choose(request.name);
  member.used = true;
  return member.backend.contend(request, sink);
}

ZookeeperBackend::Member& ZookeeperBackend::choose(const std::string& name) {
  // Acquires of a name keep the order of their calls.
  for (const auto& member : members_) {
    if (member->backend.ready() && member->backend.contends(name)) return *member;
  }
  Member* least = nullptr;
  bool all_ready = true;
  for (const auto& member : members_) {
    const SessionLocks& backend = member->backend;
    if (!backend.ready()) {
      all_ready = all_ready && backend.resting();
      continue;
    }
    const std::size_t writes = backend.writes_under_way();
    if (writes < busy_from) {
      ++calm_;
      return *member;
    }
    if (least == nullptr || writes < least->backend.writes_under_way()) least = member.get();
  }
  if (least == nullptr) return *members_.front();
  // One at a time, and none while another member is connecting: servers may allow few connections.
  if (all_ready) all_busy();
  return *least;
}

void ZookeeperBackend::all_busy() {
  const TimePoint now = host_.executor().now();
  ++busy_;
  if (now < saturating_add(counted_since_, busy_for)) return;
  // Counts over a longer time are outdated.
  const bool lasting = busy_ > calm_ && now < saturating_add(counted_since_, 2 * busy_for);
  counted_since_ = now;
  busy_ = 0;
  calm_ = 0;
  if (lasting) open_another(now);
}

void ZookeeperBackend::open_another(TimePoint now) {
  if (closing_ || now < not_before_) return;
  const auto resting =
      std::find_if(members_.begin(), members_.end(), [](const auto& member) { return member->backend.resting(); });
  if (resting == members_.end() && members_.size() >= options_.sessions) return;
  Member& member = resting == members_.end() ? add_member() : **resting;
  member.last_used = now;
  member.backend.want();
  if (!timer_.armed()) timer_.arm(saturating_add(now, sweep_every), [this] { sweep(); });
}

void ZookeeperBackend::release(const Grant& grant, ReleaseHandler done) {
  for (std::size_t i = 1; i < members_.size(); ++i) {
    Member& member = *members_[i];
    if (!member.backend.holds(grant.owner)) continue;
    member.used = true;
    return member.backend.release(grant, std::move(done));
  }
  first_.release(grant, std::move(done));
}

void ZookeeperBackend::close(std::function<void()> done) {
  closing_ = true;
  timer_.disarm();
  // The last call may destroy this.
  std::vector<SessionLocks*> backends;
  backends.reserve(members_.size());
  for (const auto& member : members_) backends.push_back(&member->backend);
  const auto one_closed = [left = std::make_shared<std::size_t>(backends.size()), done = std::move(done)] {
    if (--*left == 0) done();
  };
  for (SessionLocks* backend : backends) backend->close(one_closed);
}

// --- Rest ------------------------------------------------------------------------------------------------------------

// Continues while there are further members: a try may wake a member at rest.
void ZookeeperBackend::sweep() {
  const TimePoint now = host_.executor().now();
  for (std::size_t i = 1; i < members_.size(); ++i) {
    Member& member = *members_[i];
    const auto patience =
        member.backend.ready() ? rest_after : std::min<nanoseconds>(rest_after, options_.connect_timeout);
    if (std::exchange(member.used, false) || !member.backend.unused()) {
      member.last_used = now;
    } else if (!member.backend.resting() && now >= saturating_add(member.last_used, patience)) {
      rest(member);
    }
  }
  timer_.arm(saturating_add(now, sweep_every), [this] { sweep(); });
}

// In a later task: a member is delivering an event.
void ZookeeperBackend::connection_changed() {
  if (members_.size() == 1) return;
  host_.executor().post(lifetime_.guard([this] {
    if (!closing_) make_room();
  }));
}

// If a member that is in use has lost its connection, unused ones rest, so as not to compete with it for a new one.
void ZookeeperBackend::make_room() {
  const bool in_trouble = std::any_of(members_.begin(), members_.end(), [this](const auto& member) {
    const SessionLocks& backend = member->backend;
    return !backend.ready() && !backend.resting() && (&backend == &first_ || !backend.unused());
  });
  if (!in_trouble) return;
  for (std::size_t i = 1; i < members_.size(); ++i) {
    if (!members_[i]->backend.resting() && members_[i]->backend.unused()) rest(*members_[i]);
  }
}

void ZookeeperBackend::rest(Member& member) {
  if (!member.backend.ready()) not_before_ = saturating_add(host_.executor().now(), rest_after);
  member.backend.rest();
}

// Each member warns once about each matter.
void ZookeeperBackend::warn(WarningEvent event) {
  if (members_.size() > 1 && warned_of_.contains({event.name, event.reason.code})) return;
  warned_of_.emplace(event.name, event.reason.code);
  host_.warn(std::move(event));
}

// --- Factory ---------------------------------------------------------------------------------------------------------

std::unique_ptr<Backend> make_zookeeper_backend(BackendHost& host, const BackendConfig& config) {
  return std::make_unique<ZookeeperBackend>(host, parse_options(config), config.lease, make_c_handle,
                                            ask_over_tcp(host.executor()));
}

}  // namespace dlock::zookeeper
