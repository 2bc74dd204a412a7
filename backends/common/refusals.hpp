// Refusals of requests that a backend does not begin.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>

#include <dlock/spi/backend.hpp>

namespace dlock::common {

// Ends an acquire with this failure.
[[nodiscard]] std::unique_ptr<Contention> refuse(GrantSink& sink, Failure why);

// The problem with a lease that is longer than sessions live without their client, as that parameter of the URL says.
// The default lease is always accepted: the parameter is meant for all locks.
[[nodiscard]] std::optional<Failure> problem_with_lease(std::chrono::nanoseconds lease,
                                                        std::chrono::nanoseconds default_lease,
                                                        std::chrono::nanoseconds session, const std::string& parameter);

}  // namespace dlock::common
