#include <utility>

#include <dlock/conformance/fixture.hpp>

namespace dlock::conformance {

namespace {

Missing untested(std::string why) {
  return {Missing::Kind::untested, std::move(why)};
}
Missing not_applicable(std::string why) {
  return {Missing::Kind::not_applicable, std::move(why)};
}

}  // namespace

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
  const Capabilities caps = admin().capabilities();
  const bool no_connection = caps.scope == Scope::process || caps.lease_kind == LeaseKind::process;
  switch (feature) {
    case Feature::step_clock:
      return untested("the clock of the service cannot be stepped");
    case Feature::kill_hold:
      if (caps.can_break) return std::nullopt;
      return untested("the backend has no way to break a lock");
    case Feature::kill_session:
      if (no_connection) return not_applicable("there is no session apart from the process");
      return untested("there is no means to end a session from outside");
    case Feature::stall:
      if (no_connection) return not_applicable("there is no connection that could be disturbed");
      return untested("there is no means to stall the service");
    case Feature::delay_answers:
      if (no_connection) return not_applicable("there is no connection that could be disturbed");
      return untested("there is no means to delay answers");
    case Feature::cut:
      if (no_connection) return not_applicable("there is no connection that could be disturbed");
      return untested("there is no means to cut the connection");
    case Feature::lose_answer:
      if (no_connection) return not_applicable("there is no connection that could be disturbed");
      return untested("there is no means to lose an answer");
    case Feature::residue:
      return untested("there is no means to look at what the service keeps");
    case Feature::requests:
      if (no_connection) return not_applicable("there is no server that requests go to");
      return untested("there is no means to count the requests of the service");
    case Feature::restart:
      if (no_connection) return not_applicable("there is no server that could be restarted");
      return untested("there is no means to restart the service");
    case Feature::processes:
      if (caps.scope != Scope::process) return std::nullopt;
      return not_applicable("the locks are for one process");
  }
  return untested("unknown to this fixture");
}

void UrlFixture::kill_hold(LockKind kind, const std::string& name) {
  (void)admin().break_lock(name, kind);
}

}  // namespace dlock::conformance
