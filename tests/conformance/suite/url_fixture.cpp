#include <utility>

#include <dlock/conformance/fixture.hpp>

namespace dlock::conformance {

UrlFixture::UrlFixture(std::string url) : url_(std::move(url)) {}
UrlFixture::~UrlFixture() = default;

Client UrlFixture::make_client(ClientOptions options, Link /*link*/) {
  return connect(url_, std::move(options));
}

Client& UrlFixture::admin() const {
  if (!admin_) admin_ = connect(url_, {.label = "conformance-admin"});
  return *admin_;
}

std::optional<Missing> UrlFixture::missing(Feature feature) const {
  constexpr const char* no_wire = "there is no connection that could be disturbed";
  struct Row {
    Feature feature;
    const char* no_means;
    const char* without_connection = nullptr;  // why there is nothing to test then
  };
  constexpr Row rows[] = {
      {Feature::step_clock, "the clock of the service cannot be stepped"},
      {Feature::kill_session, "there is no means to end a session from outside",
       "there is no session apart from the process"},
      {Feature::stall, "there is no means to stall the service", no_wire},
      {Feature::delay_answers, "there is no means to delay answers", no_wire},
      {Feature::cut, "there is no means to cut the connection", no_wire},
      {Feature::lose_answer, "there is no means to lose an answer", no_wire},
      {Feature::residue, "there is no means to look at what the service keeps"},
      {Feature::requests, "there is no means to count the requests of the service",
       "there is no server that requests go to"},
      {Feature::restart, "there is no means to restart the service", "there is no server that could be restarted"},
  };
  const Capabilities caps = admin().capabilities();
  if (feature == Feature::processes) {
    if (caps.scope != Scope::process) return std::nullopt;
    return Missing{Missing::Kind::not_applicable, "the locks are for one process"};
  }
  if (feature == Feature::kill_hold) {
    if (caps.can_break) return std::nullopt;
    return Missing{Missing::Kind::untested, "the backend has no way to break a lock"};
  }
  const bool no_connection = caps.scope == Scope::process || caps.lease_kind == LeaseKind::process;
  for (const Row& row : rows) {
    if (row.feature != feature) continue;
    if (no_connection && row.without_connection != nullptr) {
      return Missing{Missing::Kind::not_applicable, row.without_connection};
    }
    return Missing{Missing::Kind::untested, row.no_means};
  }
  return Missing{Missing::Kind::untested, "unknown to this fixture"};
}

void UrlFixture::kill_hold(LockKind kind, const std::string& name) {
  (void)admin().break_lock(name, kind);
}

}  // namespace dlock::conformance
