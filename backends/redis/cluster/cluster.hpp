// The nodes of a Redis Cluster, and which of them has which slot.
//
// A request is sent to the master of its key's slot, as far as that is known. A node without the slot names the one
// that has it (MOVED: from now on; ASK: for this request, while the slot moves), and the request follows, a few times.
// If the cluster cannot answer yet (TRYAGAIN: some of the keys have moved; CLUSTERDOWN), the request is retried until
// its deadline. The map of slots is the answer of one node. It is read again at each sign of a change, and every second
// while a channel is subscribed to, because a demoted master does not notify its subscribers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include <dlock/spi/backoff.hpp>
#include <dlock/spi/executor.hpp>
#include <dlock/spi/lifetime.hpp>

#include "backends/common/connection_news.hpp"
#include "backends/redis/cluster/slot_map.hpp"
#include "backends/redis/topology/topology.hpp"

namespace dlock::redis {

// In tasks only.
class Cluster final : public Topology, private Node::User {
 public:
  // options: name the first nodes to send to. All but these outlive it.
  Cluster(BackendHost& host, const Options& options, StreamFactory streams, Node::User& user);
  ~Cluster() override;

  // The master of the key's slot; if none is known, the first node of the URL.
  [[nodiscard]] Node& node_of(std::string_view key) override;
  std::uint64_t send(std::string_view key, Request request, TimePoint deadline, Handler done) override;
  bool withdraw(std::uint64_t id, Line line) override;
  bool on_wrong_node(Node& /*node*/, const Failure& /*why*/) override {
    refresh();
    return false;
  }

  void masters(TimePoint deadline, MastersHandler done) override;
  [[nodiscard]] Node* master_at(const common::Host& host) override;

  void subscribe(const std::string& channel) override;
  void unsubscribe(const std::string& channel) override;
  void proven(const std::string& channel) override;
  [[nodiscard]] bool is_forbidden() const noexcept override { return forbidden_; }

  void diagnose(Backend::Handler<std::vector<Finding>> done) override;
  void stop() override;

  // The map may be wrong: reads it again, not too often.
  void refresh();
  // The last map.
  [[nodiscard]] const std::vector<SlotRange>& ranges() const noexcept { return ranges_; }

 private:
  struct Run;
  struct Asker;

  [[nodiscard]] Node* node_at(const common::Host& host);
  void attempt(const std::shared_ptr<Run>& run);
  void send_to(Node& node, Run& run, bool asking);
  void answered(std::uint64_t id, Result<Reply> reply, TimePoint sent);
  void follow(const std::shared_ptr<Run>& run, const std::string& error);
  void pause(const std::shared_ptr<Run>& run, Node* node, Failure why);
  // Why there is no map, for requests that have waited for it.
  [[nodiscard]] Failure no_map_in_time() const;
  void finish(const std::shared_ptr<Run>& run, Node* node, Result<Reply> reply, TimePoint sent = {});

  [[nodiscard]] bool is_master(const Node& node) const;
  [[nodiscard]] std::vector<Node*> known_masters() const;
  void read_map();
  void ask_next();
  void concluded(const Result<std::vector<SlotRange>>& map);
  void answer_askers(const Result<std::vector<SlotRange>>& map);
  void resume_runs(const Result<std::vector<SlotRange>>& map);
  void take(const std::vector<SlotRange>& ranges);
  void retire_nodes();
  void resubscribe();
  void keep_fresh();

  void on_state(Node& node, NodeState state) override;
  void on_subscribed(const std::string& channel) override { user_.on_subscribed(channel); }
  void on_message(const std::string& channel, const std::string& text) override { user_.on_message(channel, text); }
  void on_lost(const std::string& channel) override;
  void on_forbidden(const Failure& why) override;

  const StreamFactory streams_;
  common::ConnectionNews news_;
  Node::User& user_;

  std::map<std::string, std::unique_ptr<Node>> nodes_;  // by address
  std::vector<std::unique_ptr<Node>> retired_;          // may be on the call stack
  std::vector<Node*> owners_;                           // by slot; nullptr: none
  std::vector<SlotRange> ranges_;
  bool known_ = false;

  std::unordered_map<std::uint64_t, std::shared_ptr<Run>> runs_;
  std::uint64_t last_id_ = 0;

  // Reading the map.
  bool asking_ = false;
  bool again_ = false;
  std::vector<common::Host> candidates_;  // not queried yet, the next one last
  std::optional<Failure> failure_;
  std::optional<Failure> last_failure_;  // of the last read, if it failed
  bool overdue_ = false;                 // a node did not answer in time, but may be slow
  std::size_t turn_ = 0;                 // the master to begin with
  std::vector<std::shared_ptr<Asker>> askers_;
  TimePoint not_before_ = TimePoint::min();
  Timer refresh_timer_;
  Timer fresh_timer_;

  std::unordered_map<std::string, Node*> channels_;  // the node it is subscribed to; nullptr: none now
  bool forbidden_ = false;
  Lifetime lifetime_;
};

}  // namespace dlock::redis
