// srvr, one of ZooKeeper's four-letter words: a server's report on itself, over a separate connection without a
// session. Servers answer it unless 4lw.commands.whitelist excludes it.
#pragma once

#include <functional>
#include <string>

#include <dlock/spi/backend.hpp>
#include <dlock/spi/executor.hpp>

#include "backends/zookeeper/options.hpp"

namespace dlock::zookeeper {

// Queries a server, and calls done with its answer in a task, by the deadline at the latest. Destroying the asker and
// all its copies cancels the queries. In tasks only; tests have their own.
using ServerAsker =
    std::function<void(const Host& host, TimePoint deadline, std::function<void(Result<std::string>)> done)>;
[[nodiscard]] ServerAsker ask_over_tcp(Executor& executor);

}  // namespace dlock::zookeeper
