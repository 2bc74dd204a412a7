// Counts the replicas that have the writes of a connection (WAIT): a write that no replica has is forgotten by the
// replica that is promoted next. WAIT blocks its connection at the server until enough replicas have acknowledged all
// that was written on it before, so one is in flight at a time, and the next one is for all writes answered meanwhile.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <vector>

#include <dlock/spi/executor.hpp>
#include <dlock/spi/result.hpp>

#include "backends/redis/connection/command_client.hpp"

namespace dlock::redis {

// In tasks only.
class ReplicaAcks {
 public:
  using Handler = std::function<void(const Result<std::uint64_t>& replicas)>;

  // The connection outlives it.
  explicit ReplicaAcks(CommandClient& connection) : connection_(connection) {}

  // To be called while the answer to a write of this connection is handled: a later connection knows nothing of it.
  // Answers with the number of replicas that have the write, which is at least `wanted` unless the patience or the
  // deadline is over; never inside the call.
  void count(std::uint64_t wanted, std::chrono::nanoseconds patience, TimePoint deadline, Handler done);

 private:
  struct Write {
    std::uint64_t wanted;
    std::chrono::nanoseconds patience;
    TimePoint deadline;
    Handler done;
  };

  void send();
  void counted(const std::vector<Write>& writes, const Result<Reply>& reply);

  CommandClient& connection_;
  bool in_flight_ = false;
  std::vector<Write> next_;
};

}  // namespace dlock::redis
