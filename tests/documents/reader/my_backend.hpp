// The reader's own, which docs/conformance.md includes.
#pragma once

#include <memory>

#include <dlock/spi/backend.hpp>

dlock::BackendFactory make_my_backend;
