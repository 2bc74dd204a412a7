// One request for a lock: the acquire script and, with replicas_ack, the replicas' word that they have it.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include <dlock/backend.hpp>

#include "backends/redis/connection/command_client.hpp"
#include "backends/redis/connection/outage.hpp"
#include "backends/redis/requests/answers.hpp"
#include "backends/redis/sentinel/sentinels.hpp"

namespace dlock::redis {

enum class AcquireMode {
  try_once,  // do not queue
  queue,     // queue; our channel is heard
  blind,     // queue; we find out by asking
  mark,      // do not queue; a writer who finds it busy keeps readers out for a moment
};

struct Place {
  AcquireMode mode = AcquireMode::try_once;
  std::uint64_t ticket = 0;  // to queue where we were before, if we are not in the queue any more
};

// In tasks only.
class Acquirer {
 public:
  // A grant counts from `sent`. A failure is errc::unavailable if the request had no effect (any more), errc::ambiguous
  // if it may have.
  using Handler = std::function<void(Result<AcquireAnswer> answer, TimePoint sent)>;

  // client: this client's part of its values. outage: of the server, as the client's waiters see it. sentinels: nullptr
  // for none.
  Acquirer(CommandClient& commands, Outage& outage, std::string client, Sentinels* sentinels)
      : commands_(commands), outage_(outage), client_(std::move(client)), sentinels_(sentinels) {}

  // Answers at the deadline at the latest, never inside the call. In an outage a request that waits may be refused
  // instead of sent; 0 then.
  CommandClient::RequestId start(const LockRequest& request, Place place, TimePoint deadline, Handler done);
  // Nobody wants the answer any more. True: the request was not sent.
  bool withdraw(CommandClient::RequestId id) { return id == 0 || commands_.withdraw(id); }

  // Where requests are sent.
  [[nodiscard]] CommandClient& commands() noexcept { return commands_; }
  // For an answer from now on.
  [[nodiscard]] TimePoint deadline() const noexcept {
    return saturating_add(commands_.executor().now(), commands_.options().response_timeout);
  }

 private:
  struct Granted;
  [[nodiscard]] Result<AcquireAnswer> read(const Result<Reply>& reply);
  void wait_for_replicas(std::shared_ptr<Granted> granted);
  void take_back(std::shared_ptr<Granted> granted, Failure why);

  CommandClient& commands_;
  Outage& outage_;
  const std::string client_;
  Sentinels* const sentinels_;
};

// For a script's argument: whole milliseconds, rounded up.
[[nodiscard]] std::string in_milliseconds(std::chrono::nanoseconds d);

}  // namespace dlock::redis
