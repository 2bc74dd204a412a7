// Counts the replicas that have the writes of a connection (WAIT): a write that no replica has is forgotten by the
// replica that is promoted next. WAIT blocks its connection at the server until enough replicas have acknowledged all
// that was written on it before. So one is in flight at a time, and the next one is for all writes answered meanwhile.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include <dlock/spi/executor.hpp>
#include <dlock/spi/lifetime.hpp>
#include <dlock/spi/result.hpp>

#include "backends/redis/connection/command_client.hpp"

namespace dlock::redis {

// In tasks only.
class ReplicaAcks {
 public:
  using Handler = std::function<void(const Result<std::uint64_t>& replicas)>;

  // The connection outlives it.
  explicit ReplicaAcks(CommandClient& connection) : connection_(connection), timer_(connection.executor()) {}

  // To be called while the answer to a write of this connection is handled. Answers with the number of replicas that
  // have the write, fewer than wanted only after the patience, which is at most a third of the response timeout and a
  // second, because WAIT holds up all other requests of the connection. errc::ambiguous at the deadline, or if the
  // connection breaks: a WAIT on a new one knows nothing of the write. Never inside the call.
  void count(std::uint64_t wanted, std::chrono::nanoseconds patience, TimePoint deadline, Handler done);

 private:
  struct Write {
    std::uint64_t connection;
    std::uint64_t wanted;
    TimePoint until;  // when the patience ends
    TimePoint deadline;
    Handler done;
    bool covered = false;  // by the WAIT in flight
  };

  void schedule();
  void send();
  void counted(const Result<Reply>& reply);
  // Answers the writes that meet the condition, in their order.
  template <class Which>
  void answer(Which&& which, const Result<std::uint64_t>& replicas);
  [[nodiscard]] Failure failure(const std::string& why) const;

  CommandClient& connection_;
  std::vector<Write> writes_;
  bool in_flight_ = false;
  TimePoint wait_until_;  // of the WAIT in flight
  bool scheduled_ = false;
  Timer timer_;  // for the first deadline
  Lifetime lifetime_;
};

}  // namespace dlock::redis
