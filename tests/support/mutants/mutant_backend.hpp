// A backend with a deliberate fault: it keeps its locks in a memory store, and changes one thing that goes in or comes
// out.
#pragma once

#include <memory>

#include <dlock/client.hpp>
#include <dlock/spi/backend.hpp>

#include "backends/memory/memory_store.hpp"
#include "tests/support/mutants/mutation.hpp"

namespace dlock::mutants {

// The state of a fault that all clients of a service share.
struct Service;
[[nodiscard]] std::shared_ptr<Service> make_service();

[[nodiscard]] std::unique_ptr<Backend> make_mutant(BackendHost& host, const BackendConfig& config, Mutation mutation,
                                                   std::shared_ptr<memory::MemoryStore> store,
                                                   std::shared_ptr<Service> service, const BackendFactory& correct);

}  // namespace dlock::mutants
