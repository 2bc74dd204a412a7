// srvr, one of ZooKeeper's four-letter words: a server reports on itself, over a connection of its own and without a
// session. Servers answer this word unless their setting 4lw.commands.whitelist says otherwise.
#pragma once

#include <functional>
#include <string>

#include <dlock/spi/backend.hpp>
#include <dlock/spi/executor.hpp>

#include "backends/zookeeper/options.hpp"

namespace dlock::zookeeper {

// Asks a server, and calls done with its answer, by the deadline at the latest, as a task. The end of the asker, with
// all its copies, cancels the questions. In tasks only; tests have their own.
using ServerAsker =
    std::function<void(const Host& host, TimePoint deadline, std::function<void(Result<std::string>)> done)>;
[[nodiscard]] ServerAsker ask_over_tcp(Executor& executor);

}  // namespace dlock::zookeeper
