// Gives locks back, and makes sure that owners who gave up leave nothing behind, whatever becomes of the messages.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <unordered_map>

#include <dlock/backend.hpp>

#include "backends/redis/answers.hpp"
#include "backends/redis/command_client.hpp"
#include "util/backoff.hpp"

namespace dlock::redis {

// In tasks only.
class Releases {
 public:
  // commands: for locks that are held. acquiring: the connection that acquires are sent on; giving one up goes the same
  // way, so that it arrives behind it. publish_forbidden: called when the server says that it may not tell waiters.
  Releases(CommandClient& commands, CommandClient& acquiring, std::string client,
           std::function<void()> publish_forbidden);

  // Answers within the response timeout; goes on in the background if it was not confirmed by then.
  void release(const Grant& grant, Backend::ReleaseHandler done);

  // The owner gives up: it neither holds nor waits, nor will it when its last request arrives late. Goes on until
  // that is certain. stragglers: a connection broke under one of its requests, which may yet arrive.
  void abandon(const std::string& name, const OwnerId& owner, std::chrono::nanoseconds lease, bool stragglers);

  // The server gave this owner a lock. No effect unless it was abandoned.
  void heard_of(const OwnerId& owner);

  // Calls done once nothing is left to be confirmed.
  void finish(std::function<void()> done);

 private:
  struct Attempt;
  struct Entry {
    explicit Entry(Executor& executor) : timer(executor) {}
    std::string name;
    TimePoint moot;  // when the server has forgotten the owner by itself
    bool confirmed = false;
    bool stragglers = false;
    util::Backoff backoff{std::chrono::seconds(1)};
    Timer timer;
  };

  void attempt(std::shared_ptr<Attempt> attempt);
  void clean(const OwnerId& owner);
  void cleaned(const OwnerId& owner, const Result<ReleaseAnswer>& answer);
  void forget(const OwnerId& owner);
  void report_if_finished();
  void send(CommandClient& commands, const std::string& name, const OwnerId& owner, bool leave, TimePoint deadline,
            std::function<void(Result<ReleaseAnswer>)> done);

  CommandClient& commands_;
  CommandClient& acquiring_;
  const std::string client_;
  const std::function<void()> publish_forbidden_;
  std::unordered_map<OwnerId, Entry> entries_;
  std::size_t unconfirmed_ = 0;
  std::function<void()> finished_;
};

}  // namespace dlock::redis
