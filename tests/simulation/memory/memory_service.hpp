// The memory backend, and clients that exchange messages with its store, with what can be wrong with them.
#pragma once

#include "backends/memory/memory_backend.hpp"
#include "tests/simulation/service.hpp"
#include "tests/simulation/world.hpp"
#include "tests/support/mutants/mutant_backend.hpp"

namespace dlock::simulation {

// How clients reach the store.
enum class Way {
  messages,  // that meet with fates; by watch or poll
  calls,     // as programs do
};

[[nodiscard]] Subject memory_subject(Way way, memory::Strategy strategy, Mutation mutation = Mutation::none);

}  // namespace dlock::simulation
