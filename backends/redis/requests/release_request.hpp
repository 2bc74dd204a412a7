// Asks Redis to free a lock.
#pragma once

#include <functional>
#include <string>

#include <dlock/releases.hpp>

#include "backends/redis/connection/command_client.hpp"
#include "backends/redis/connection/outage.hpp"
#include "backends/redis/requests/answers.hpp"
#include "backends/redis/requests/keys.hpp"

namespace dlock::redis {

// Frees the lock if it is this value's, and sees to it that a living waiter gets it, for which it asks several times
// where a crowd of dead ones is in the way. leave: this value leaves the queue, too. Answers at the deadline at the
// latest. The connection outlives it.
void request_release(CommandClient& commands, std::string lock_key, std::string value, bool leave, TimePoint deadline,
                     std::function<void(Result<ReleaseAnswer>)> done);

// Frees it when the client ends, and nobody hears the answer (CommandClient::last_word()). The value leaves the queue.
void release_at_the_end(CommandClient& commands, const std::string& lock_key, const std::string& value);

// commands: for locks that are held. acquiring: the connection that acquires are sent on. client: this client's part of
// its values. publish_forbidden: called when the server says that it may not tell waiters. The connections and the
// outage outlive it.
[[nodiscard]] Releases::Ask release_requests(CommandClient& commands, CommandClient& acquiring, Outage& outage,
                                             std::string client, std::function<void()> publish_forbidden);

}  // namespace dlock::redis
