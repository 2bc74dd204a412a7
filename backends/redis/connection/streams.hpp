// How connections to a server are made.
#pragma once

#include <functional>
#include <memory>

#include <dlock/spi/executor.hpp>

#include "backends/common/stream.hpp"
#include "backends/redis/options.hpp"

namespace dlock::redis {

// Executor, options and events outlive the stream.
using StreamFactory =
    std::function<std::unique_ptr<common::Stream>(Executor&, const Options&, common::Stream::Events&)>;

// Over TCP. tls: nullptr for none.
[[nodiscard]] StreamFactory tcp_streams(std::shared_ptr<const common::TlsContext> tls);

}  // namespace dlock::redis
