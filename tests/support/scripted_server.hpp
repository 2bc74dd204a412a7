// A server whose answers come from the test, however broken or hostile.
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
    // Sent after `bytes`, again and again, until the client disconnects, or until about so many bytes were sent. After
    // it has begun, nothing else is answered.
    std::string repeat = {};
    std::uint64_t repeat_for = std::numeric_limits<std::uint64_t>::max();
    bool close = false;      // after the bytes
    std::size_t unread = 0;  // so many bytes at the end are passed to the next call again
  };
  // Called on the server's thread: with nothing for a new connection, then with all received data.
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
  // False: the connection has ended.
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
