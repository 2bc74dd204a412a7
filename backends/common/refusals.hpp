// What a backend answers to what it does not even begin.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>

#include <dlock/spi/backend.hpp>

namespace dlock::common {

// Of an acquire.
[[nodiscard]] std::unique_ptr<Contention> refuse(GrantSink& sink, Failure why);

// What is wrong with a lease where sessions live for so long without their client, as that parameter of the URL says.
// The default lease is accepted as it is: the parameter is meant for all locks.
[[nodiscard]] std::optional<Failure> problem_with_lease(std::chrono::nanoseconds lease,
                                                        std::chrono::nanoseconds default_lease,
                                                        std::chrono::nanoseconds session, const std::string& parameter);

}  // namespace dlock::common
