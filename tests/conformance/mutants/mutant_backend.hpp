// A backend that is broken on purpose: the memory backend, with one thing changed that goes into it or comes out.
#pragma once

#include <dlock/client.hpp>

#include "mutants/mutation.hpp"

namespace dlock::conformance {

// For memory:// URLs.
[[nodiscard]] BackendFactory mutant_backend(Mutation mutation);

}  // namespace dlock::conformance
