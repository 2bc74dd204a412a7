// A server that answers what a test wants, as broken or hostile as it likes.
//
//   ScriptedServer server([](const std::string& received) {
//     return ScriptedServer::Answer{.bytes = "HTTP/1.1 400 Bad Request\r\n\r\n", .close = true};
//   });
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <list>
#include <mutex>
#include <string>
#include <thread>

#include "torture/rig/socket.hpp"

namespace dlock::test {

class ScriptedServer {
 public:
  struct Answer {
    std::string bytes = {};
    // Sent after them, again and again, until the client goes, or until about so many bytes of it have gone out.
    // Nothing else is answered once that has begun.
    std::string repeat = {};
    std::uint64_t repeat_for = std::numeric_limits<std::uint64_t>::max();
    bool close = false;      // after the bytes
    std::size_t unread = 0;  // so many bytes at the end will come again, with what follows
  };
  // Called on the server's thread: with nothing when a connection has come, then whenever something has come.
  using Script = std::function<Answer(const std::string& received)>;
  struct Counters {
    std::size_t accepted = 0;
    std::size_t ended = 0;  // by the client or by the script
    std::uint64_t received = 0;
    std::uint64_t sent = 0;
  };

  explicit ScriptedServer(Script script);
  ScriptedServer(const ScriptedServer&) = delete;
  ScriptedServer& operator=(const ScriptedServer&) = delete;
  ~ScriptedServer();

  [[nodiscard]] std::uint16_t port() const noexcept { return listener_.port(); }
  [[nodiscard]] Counters counters() const;
  // Waits until the condition holds. False: the hang guard ended the wait.
  [[nodiscard]] bool wait_until(const std::function<bool(const Counters&)>& condition) const;

 private:
  struct Connection {
    rig::UniqueFd fd;
    std::string received{};
    std::string to_send{};
    std::string repeat{};
    std::uint64_t repeats_left = 0;
    bool close_when_sent = false;
  };

  void run();
  void publish();
  void wait_for_work() const;
  void ask_script(Connection& connection) const;
  // False when the connection is over.
  [[nodiscard]] bool serve(Connection& connection);
  [[nodiscard]] bool send_what_is_due(Connection& connection);

  Script script_;
  rig::Listener listener_;
  rig::UniqueFd stop_;
  std::list<Connection> connections_;
  Counters current_;

  mutable std::mutex mutex_;
  mutable std::condition_variable changed_;
  Counters counters_;
  std::jthread thread_;
};

}  // namespace dlock::test
