// A connection to the server: opened when it is first wanted and again when it breaks (common::Reconnect), with a
// Handshake, monitored by common::Health.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>

#include <dlock/spi/executor.hpp>
#include <dlock/spi/lifetime.hpp>

#include "backends/common/health.hpp"
#include "backends/common/reconnect.hpp"
#include "backends/redis/connection/handshake.hpp"
#include "backends/redis/connection/streams.hpp"
#include "backends/redis/options.hpp"

namespace dlock::redis {

// In tasks only.
class Link final : private common::Stream::Events, private common::Health::User {
 public:
  class User {
   public:
    User() = default;
    User(const User&) = delete;
    User& operator=(const User&) = delete;
    virtual void link_ready() = 0;
    virtual void link_received(Reply reply) = 0;
    virtual void link_drained() = 0;
    // The connection broke, or could not be made. sent(): how many of the written bytes may have reached the server.
    virtual void link_down(const Failure& why, bool was_ready) = 0;
    // Nothing was received for a while: send a request, so that a dead connection is noticed.
    virtual void link_silent() = 0;

   protected:
    ~User() = default;
  };

  // insists: retries even after a final refusal, with long pauses.
  Link(Executor& executor, const Options& options, StreamFactory streams, User& user, bool insists = false);
  ~Link();

  // Connects, unless it is connected; during a pause, sooner than planned.
  void want() { reconnect_.want(); }
  [[nodiscard]] bool ready() const noexcept { return reconnect_.is_ready(); }
  // Why there is no connection.
  [[nodiscard]] Failure problem() const;

  // Only while ready. What is written goes out with flush().
  void write(std::string_view bytes);
  void flush() { connection_->stream->flush(); }
  void receive() { connection_->stream->receive(); }
  // Counted from the beginning of the current connection.
  [[nodiscard]] std::uint64_t written() const noexcept { return written_; }
  [[nodiscard]] std::uint64_t sent() const noexcept { return connection_ ? connection_->stream->sent() : sent_; }

  // How to ask this server for its role; only while ready.
  [[nodiscard]] RoleQuestion role_question() const noexcept { return role_question_; }
  // A request about locks was answered on this connection.
  void answered() noexcept { reconnect_.answered(); }
  [[nodiscard]] bool is_answered() const noexcept { return reconnect_.is_answered(); }
  // This connection works: if it breaks, the next one is made without a pause.
  void proven() noexcept { reconnect_.proven(); }

  // Closes a faulty connection, and opens another.
  void break_off(Failure why);
  // Closes the connection, if any; the next one is opened without a pause when it is wanted. Does not call link_down().
  void rest();
  // Ends all activity. last_words: sent first if there is a connection, even behind an unanswered handshake.
  void stop(std::string_view last_words = {});

 private:
  void connect();
  void open();
  [[nodiscard]] Failure no_connection(std::string why) const;
  void down(Failure why);
  void take(Reply reply);
  void drop_connection();

  void opened() override;
  void received(std::string_view bytes) override;
  void drained() override;
  void closed(Failure why, bool orderly) override;

  void health_ask() override { user_.link_silent(); }
  void health_catch_up() override { receive(); }
  void health_dead() override;

  Executor& executor_;
  const Options& options_;
  const StreamFactory streams_;
  User& user_;

  struct Connection {
    explicit Connection(std::unique_ptr<common::Stream> over) : stream(std::move(over)) {}
    std::unique_ptr<common::Stream> stream;
    ReplyReader replies;
    Lifetime lifetime;
  };
  std::unique_ptr<Connection> connection_;
  std::optional<Handshake> handshake_;  // while it is under way
  RoleQuestion role_question_ = RoleQuestion::none;
  TimePoint connect_by_;
  std::size_t refused_addresses_ = 0;  // in this attempt
  std::uint64_t written_ = 0;
  std::uint64_t sent_ = 0;  // of the last connection, once it is gone
  common::Reconnect reconnect_;
  common::Health health_;
  Timer connect_timer_;
};

}  // namespace dlock::redis
