// One server: the client's connections to it, and whether it is usable.
#pragma once

#include <cstdint>
#include <optional>

#include <dlock/spi/executor.hpp>
#include <dlock/spi/lifetime.hpp>

#include "backends/common/connection_news.hpp"
#include "backends/redis/connection/command_client.hpp"
#include "backends/redis/connection/streams.hpp"
#include "backends/redis/connection/subscriber.hpp"
#include "backends/redis/options.hpp"
#include "backends/redis/topology/outage.hpp"
#include "backends/redis/topology/replica_acks.hpp"

namespace dlock::redis {

// The connection for a command. With replicas_ack, writes that replicas have to acknowledge go over a second one,
// because WAIT blocks it; otherwise there is one for all.
enum class Line { common, acknowledged };

enum class NodeState {
  connected,  // a connection for acquires was made; nothing about locks was answered on it yet
  usable,     // an outage has ended: all waiters should retry
  down,       // a connection broke; the others, the subscriber's included, are replaced, too
};

struct Request {
  const Script* script = nullptr;  // if any
  Command words;
  Line line = Line::common;
  AtTheEnd at_the_end = AtTheEnd::dropped;
};

// In tasks only.
class Node {
 public:
  class User : public Subscriber::User {
   public:
    // Called inside reconnect() and outage().answered(), else not inside a call to the node.
    virtual void on_state(Node& node, NodeState state) = 0;

   protected:
    ~User() = default;
  };

  // options: with this node as the host. All but options outlive it.
  Node(Executor& executor, Options options, const StreamFactory& streams, common::ConnectionNews& news, User& user);

  [[nodiscard]] const Options& options() const noexcept { return options_; }
  [[nodiscard]] CommandClient& line(Line which) noexcept;
  [[nodiscard]] CommandClient& commands() noexcept { return common_.client; }
  // As CommandClient's. asking: behind ASKING, to a node that a slot is moving to.
  std::uint64_t send(Request request, TimePoint deadline, CommandHandler done, bool asking = false);
  [[nodiscard]] Subscriber& subscriber() noexcept { return subscriber_; }
  [[nodiscard]] const Subscriber& subscriber() const noexcept { return subscriber_; }
  [[nodiscard]] Outage& outage() noexcept { return outage_; }
  // Only with replicas_ack: of the writes over Line::acknowledged.
  [[nodiscard]] ReplicaAcks& replica_acks() noexcept { return *replica_acks_; }

  // It may be the wrong server: replaces all connections for commands.
  void reconnect(const Failure& why);
  // It is not needed, at least for now: closes all connections, and fails the requests in flight.
  void rest(const Failure& why);
  // Ends all activity, as CommandClient::stop().
  void stop();

 private:
  class Connection final : private common::ConnectionObserver {
   public:
    Connection(Node& node, Executor& executor, const StreamFactory& streams, common::ConnectionNews& news,
               bool acquires)
        : node_(node), news_(news), acquires_(acquires), client(executor, node.options_, streams, this) {}
    void not_needed() { news_.not_needed(); }

   private:
    void opened() override;
    void connected() override { news_.connected(); }
    void broken(const Failure& why) override;

    Node& node_;
    common::ConnectionNews::Source news_;
    const bool acquires_;

   public:
    CommandClient client;
  };

  const Options options_;
  User& user_;
  Outage outage_;
  Connection common_;
  std::optional<Connection> acknowledged_;
  std::optional<ReplicaAcks> replica_acks_;
  Subscriber subscriber_;
  Lifetime lifetime_;
};

}  // namespace dlock::redis
