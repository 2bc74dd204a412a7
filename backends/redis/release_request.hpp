// Asks Redis to free a lock.
#pragma once

#include <functional>
#include <string>

#include "backends/redis/command_client.hpp"
#include "core/releases.hpp"

namespace dlock::redis {

// commands: for locks that are held. acquiring: the connection that acquires are sent on. client: this client's part of
// its values. publish_forbidden: called when the server says that it may not tell waiters. The connections outlive it.
[[nodiscard]] detail::Releases::Ask release_requests(CommandClient& commands, CommandClient& acquiring,
                                                     std::string client, std::function<void()> publish_forbidden);

}  // namespace dlock::redis
