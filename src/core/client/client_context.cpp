#include "core/client/client_context.hpp"

#include <algorithm>
#include <cctype>
#include <set>
#include <utility>

#include "util/duration_text.hpp"
#include "util/process.hpp"

namespace dlock::detail {

namespace {

// Hosts may be listed in any order, and their names in any case.
std::string place_of(const Url& url) {
  std::set<std::string> hosts;
  for (const Url::Host& host : url.hosts()) {
    std::string name = host.name;
    std::transform(name.begin(), name.end(), name.begin(),
                   [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    if (name.find(':') != std::string::npos) name = "[" + name + "]";
    hosts.insert(name + (host.port ? ":" + std::to_string(*host.port) : ""));
  }
  std::string place;
  for (const std::string& host : hosts) place += (place.empty() ? "" : ",") + host;
  const std::size_t last = url.path().find_last_not_of('/');
  return place + (last == std::string::npos ? "" : url.path().substr(0, last + 1));
}

}  // namespace

ClientContext::ClientContext(std::shared_ptr<engine::Engine> main_engine, const Url& url, const ClientOptions& options)
    : engine(std::move(main_engine)),
      clock(options.clock),
      redacted_url(url.redacted()),
      place(place_of(url)),
      holder(util::host_name() + ":" + std::to_string(util::process_id()) + ":" + options.label),
      lease(options.lease.value()),
      response_timeout(options.response_timeout.value()),
      connect_timeout(options.connect_timeout.value()),
      close_timeout(options.close_timeout.value()),
      fork_generation(util::fork_generation()),
      notifier(std::make_shared<Notifier>(engine, options.observer)) {}

std::optional<Failure> ClientContext::problem_with_lease(std::chrono::nanoseconds wanted) const {
  if (wanted >= capabilities.min_lease && wanted <= capabilities.max_lease) return std::nullopt;
  return Failure{errc::invalid_argument, "lease: " + util::to_text(wanted) + " is outside " +
                                             util::to_text(capabilities.min_lease) + ".." +
                                             util::to_text(capabilities.max_lease) + ", the bounds of backend \"" +
                                             std::string(capabilities.backend) + "\""};
}

std::string ClientContext::endpoint() const {
  return std::string(capabilities.backend) + "://" + place;
}

bool ClientContext::foreign_process() const noexcept {
  return util::fork_generation() != fork_generation;
}

}  // namespace dlock::detail
