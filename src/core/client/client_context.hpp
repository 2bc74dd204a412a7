// The settings and the engine that all parts of a client share; they live as long as its last lease.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include <dlock/capabilities.hpp>
#include <dlock/clock.hpp>
#include <dlock/error.hpp>
#include <dlock/options.hpp>
#include <dlock/spi/url.hpp>

#include "core/client/notifier.hpp"
#include "engine/engine.hpp"

namespace dlock::detail {

struct ClientContext {
  // Options must have been validated.
  ClientContext(std::shared_ptr<engine::Engine> main_engine, const Url& url, const ClientOptions& options);

  // Whether the backend can keep such a lease.
  [[nodiscard]] std::optional<Failure> problem_with_lease(std::chrono::nanoseconds wanted) const;
  // Identifies the service: backend, hosts and path of the URL, without credentials and parameters. The same for all
  // clients of a service whose URLs name hosts and ports in the same way.
  [[nodiscard]] std::string endpoint() const;
  // True in a child made by fork(): the client works only in the parent.
  [[nodiscard]] bool foreign_process() const noexcept;

  const std::shared_ptr<engine::Engine> engine;
  const std::shared_ptr<const Clock> clock;
  const std::string redacted_url;
  const std::string place;  // of the endpoint
  const std::string holder;
  const std::chrono::nanoseconds lease;
  const std::chrono::nanoseconds response_timeout;
  const std::chrono::nanoseconds connect_timeout;
  const std::chrono::nanoseconds close_timeout;
  const std::uint64_t fork_generation;
  const std::shared_ptr<Notifier> notifier;
  Capabilities capabilities;  // constant once the client is made
};

}  // namespace dlock::detail
