// The other end of a client's connections, played by the test: no sockets, no time but the manual engine's.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <dlock/spi/lifetime.hpp>

#include "backends/redis/connection/reply.hpp"
#include "backends/redis/connection/streams.hpp"
#include "backends/redis/requests/scripts.hpp"

namespace dlock::redis {

using Words = std::vector<std::string>;

class FakeStream;

// Which script a command runs, by its text or by its hash; nullptr for none.
[[nodiscard]] const Script* script_in(const Words& command);

// By default: accepts connections, says yes to the handshake, is a master, counts subscribers, says nothing else about
// itself, and keeps silent to everything else.
class FakeServer {
 public:
  enum class Dialling { accept, refuse, silence };

  [[nodiscard]] StreamFactory streams();

  // The reply to a command, in Redis's protocol; empty for none now.
  std::function<std::string(FakeStream& from, const Words& command)> answer;
  // If set, it gets all commands, and nothing else here concerns itself with them.
  std::function<void(FakeStream& from, const Words& command)> serve;
  std::function<void(FakeStream& wire)> ended;  // by the client
  Dialling dialling = Dialling::accept;
  std::size_t addresses = 1;  // of the server's name
  bool takes_bytes = true;    // false: the network takes nothing that is written from now on

  // Every command that arrived, over all connections, but for the handshake and what asks about the server and about
  // who listens.
  std::vector<Words> commands;
  std::vector<Words> handshakes;
  int dialled = 0;
  std::vector<FakeStream*> connections;  // those that stand, oldest first

  // The calls of that script: "acquire", "renew", "release" or "inspect".
  [[nodiscard]] std::vector<Words> calls(std::string_view script) const;
  // Breaks all connections.
  void cut();
  [[nodiscard]] std::int64_t subscribers() const;
  // To all subscribers.
  void publish(const std::string& channel, const std::string& text);

 private:
  friend class FakeStream;
  void take(FakeStream& from, const Words& command);
};

class FakeStream final : public common::Stream {
 public:
  FakeStream(FakeServer& server, Executor& executor, Events& events);
  ~FakeStream() override;

  void open(TimePoint deadline) override;
  void write(std::string_view bytes) override { unsent_ += bytes; }
  void flush() override;
  void receive() override;
  void discard() noexcept override {}
  std::size_t refuse_peer() override { return server_.addresses; }
  [[nodiscard]] std::uint64_t sent() const noexcept override { return sent_; }
  [[nodiscard]] std::string peer_name() const override { return "localhost:6379"; }

  // Lets bytes arrive at the client, as a task.
  void reply(const std::string& bytes);
  // The same, but the client is not notified: it finds them when it reads.
  void arrive(const std::string& bytes) { arrived_ += bytes; }
  void close(Failure why);

 private:
  friend class FakeServer;
  void later(Executor::Task task);

  FakeServer& server_;
  Executor& executor_;
  Events& events_;
  ReplyReader commands_;  // a command has the form of a reply
  bool subscribed_ = false;
  bool receives_ = false;  // soon
  bool hung_up_ = false;   // the server: it sends nothing more
  std::string unsent_;
  std::string arrived_;
  std::uint64_t sent_ = 0;
  Lifetime lifetime_;
};

// Bytes in which '|' stands for the end of a line, and the reply that they are.
[[nodiscard]] std::string lines(std::string_view text);
[[nodiscard]] Reply parsed(std::string_view text);

// With short timeouts.
[[nodiscard]] Options options_for(const std::string& url, std::chrono::nanoseconds lease = std::chrono::seconds(10));

// Replies.
[[nodiscard]] std::string role(const std::string& name);
[[nodiscard]] std::string bulk(const std::string& text);
[[nodiscard]] std::string about_channel(const std::string& kind, const std::string& channel);  // "subscribe", ...
[[nodiscard]] std::string published(const std::string& channel, const std::string& text);
[[nodiscard]] std::string number(std::int64_t value);

}  // namespace dlock::redis
