// connect(): from a URL and options to a running client.
#include <utility>

#include <dlock/client.hpp>
#include <dlock/spi/url.hpp>

#include "core/client/client_core.hpp"
#include "core/spi/registry.hpp"
#include "engine/thread_engine.hpp"
#include "util/names.hpp"
#include "util/process.hpp"

namespace dlock {

namespace {

constexpr std::size_t max_default_label_bytes = 64;

// The URL overrides the program: an operator can change it without a new build.
void take_common_parameters(Url& url, ClientOptions& options) {
  if (auto label = url.take("label")) options.label = *std::move(label);
  if (const auto d = url.take_duration("lease")) options.lease = *d;
  if (const auto d = url.take_duration("response_timeout")) options.response_timeout = *d;
  if (const auto d = url.take_duration("connect_timeout")) options.connect_timeout = *d;
  if (const auto d = url.take_duration("close_timeout")) options.close_timeout = *d;
}

void require_positive(Duration duration, const char* name) {
  if (duration <= Duration()) throw Error(errc::invalid_argument, std::string(name) + ": must be positive");
}

void complete(ClientOptions& options) {
  if (options.label.empty()) options.label = util::program_name().substr(0, max_default_label_bytes);
  if (const auto problem = util::problem_with_label(options.label)) throw Error(errc::invalid_argument, *problem);
  require_positive(options.lease, "lease");
  require_positive(options.response_timeout, "response_timeout");
  require_positive(options.connect_timeout, "connect_timeout");
  if (options.close_timeout < Duration()) throw Error(errc::invalid_argument, "close_timeout: must not be negative");
  if (!options.clock) options.clock = boottime_clock();
  if (!options.random) options.random = util::kernel_random_or_derived();
}

// Reports a default lease that the backend cannot keep here, not at the first acquire.
void check_lease(const detail::ClientCore& core, std::chrono::nanoseconds lease) {
  if (const auto problem = core.context().problem_with_lease(lease)) throw Error(*problem);
}

}  // namespace

Client connect(std::string_view url, ClientOptions options) {
  return connect(url, std::move(options), BackendFactory());
}

Client connect(std::string_view url, ClientOptions options, const BackendFactory& factory) {
  Url parsed = Url::parse(url);
  const BackendFactory make = factory ? factory : detail::find_backend(parsed.scheme());
  take_common_parameters(parsed, options);
  complete(options);
  auto engine = engine::ThreadEngine::start(options.clock, options.random);
  Client client(detail::ClientCore::create(std::move(engine), std::move(parsed), options, make));
  check_lease(*client.core_, options.lease.value());
  return client;
}

}  // namespace dlock
