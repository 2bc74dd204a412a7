// The nodes of a Redis Cluster, and who of them has which slot.
//
// Requests are sent to the master of their key's slot as far as that is known. A node that has not got the slot says
// who has (MOVED: from now on; ASK: for this request, while the slot moves), and the request follows, a few times.
// Where the cluster cannot answer yet (TRYAGAIN: some of the keys have moved; CLUSTERDOWN), it is asked again until the
// deadline. The map is what one of the nodes says, asked anew whenever something hints at a change, and every second
// while a waiter listens: a master that was demoted says nothing to those that listen at it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include <dlock/duration.hpp>
#include <dlock/spi/backoff.hpp>
#include <dlock/spi/executor.hpp>
#include <dlock/spi/lifetime.hpp>
#include <dlock/spi/task.hpp>

#include "backends/common/connection_news.hpp"
#include "backends/redis/cluster/slot_map.hpp"
#include "backends/redis/connection/server.hpp"
#include "backends/redis/connection/wire.hpp"
#include "backends/redis/options.hpp"

namespace dlock::redis {

// In tasks only.
class Cluster {
 public:
  // server: that the answer, or its absence, says something about; nullptr: about none, but about the key's slot.
  using Handler = Callback<Server*, Result<Reply>, TimePoint>;
  struct Request {
    const Script* script = nullptr;  // if any
    Command words;
    AtTheEnd at_the_end = AtTheEnd::dropped;
  };

  class User : public Server::User {
   public:
    // Some slots have other masters. Not from inside a call to the cluster.
    virtual void slots_moved() = 0;
    // It has no slots any more, and goes after this.
    virtual void server_gone(Server& server) = 0;

   protected:
    ~User() = default;
  };

  // options: name the first nodes to ask. All but these outlive it.
  Cluster(Executor& executor, Options options, WireFactory wires, common::ConnectionNews& news, User& user);
  ~Cluster();

  [[nodiscard]] const Options& options() const noexcept { return options_; }
  [[nodiscard]] Executor& executor() const noexcept { return executor_; }
  // For an answer from now on.
  [[nodiscard]] TimePoint answer_by() const noexcept {
    return saturating_add(executor_.now(), options_.response_timeout);
  }

  // The master of the key's slot; a node of the URL as long as none is known.
  [[nodiscard]] Server& of(std::string_view key);
  // The handler is called once, never inside the call, at the deadline at the latest, with what the last node that was
  // asked has answered.
  std::uint64_t run(Line line, std::string_view key, Request request, TimePoint deadline, Handler done);
  // The answer is not wanted any more. True: the request had no effect and never will have.
  bool withdraw(std::uint64_t id);

  // The map may be wrong: asks for it, not too often.
  void refresh();
  // As long as a waiter listens at the nodes.
  void keep_fresh(bool on);
  // What a node's error says about a key: where to ask instead, if it says so. For what was not run(), too.
  struct Elsewhere {
    Server* server = nullptr;
    bool asks = false;  // after ASKING
  };
  static constexpr int most_redirections = 5;  // of a request
  [[nodiscard]] Elsewhere redirected(Server& server, std::uint16_t slot, std::string_view error);
  // Calls done with all masters when the map has been read, or with the reason why it could not be, at the deadline at
  // the latest.
  using MastersHandler = std::function<void(Result<std::vector<common::Host>>)>;
  void masters(TimePoint deadline, MastersHandler done);
  [[nodiscard]] Server* master_at(const common::Host& host) const;
  // What the last map said of each.
  [[nodiscard]] const std::vector<SlotRange>& ranges() const noexcept { return ranges_; }
  void stop();

 private:
  struct Run;

  [[nodiscard]] Server* node_at(const common::Host& host);
  void attempt(const std::shared_ptr<Run>& run);
  void ask(Run& run, Server& server, bool asking);
  void answered(std::uint64_t id, Result<Reply> reply, TimePoint sent);
  void follow(const std::shared_ptr<Run>& run, const std::string& error);
  void pause(const std::shared_ptr<Run>& run, Server* server, Failure why);
  // Why there is no map, for those that have waited for it.
  [[nodiscard]] Failure no_map_in_time() const;
  void finish(const std::shared_ptr<Run>& run, Server* server, Result<Reply> reply, TimePoint sent = {});

  [[nodiscard]] bool is_master(const Server& server) const;
  [[nodiscard]] std::vector<Server*> known_masters() const;
  void begin();
  void ask_next();
  void concluded(const Result<std::vector<SlotRange>>& said);
  void answer_askers(const Result<std::vector<SlotRange>>& said);
  void go_on(const Result<std::vector<SlotRange>>& said);
  [[nodiscard]] bool take(const std::vector<SlotRange>& ranges);
  void retire();

  Executor& executor_;
  const Options options_;
  const WireFactory wires_;
  common::ConnectionNews& news_;
  User& user_;

  std::map<std::string, std::unique_ptr<Server>> nodes_;  // by address
  std::vector<std::unique_ptr<Server>> gone_;             // may be what calls us
  std::vector<Server*> owners_;                           // by slot; nullptr: none
  std::vector<SlotRange> ranges_;
  bool known_ = false;
  bool corrected_ = false;  // since it was read

  std::unordered_map<std::uint64_t, std::shared_ptr<Run>> runs_;
  std::uint64_t last_id_ = 0;

  // The question for the map.
  bool asking_ = false;
  bool again_ = false;
  std::vector<common::Host> candidates_;  // still to be asked, the next one last
  std::optional<Failure> failure_;
  std::optional<Failure> last_failure_;  // of the questions before, while none was answered
  bool overdue_ = false;                 // one of them may still answer, and is given more time
  std::size_t turn_ = 0;                 // with whom to begin
  struct Asker;
  std::vector<std::shared_ptr<Asker>> askers_;
  TimePoint not_before_ = TimePoint::min();
  TimePoint changed_at_ = TimePoint::min();
  Backoff pace_;
  bool fresh_ = false;
  Timer refresh_timer_;
  Timer fresh_timer_;
  Lifetime lifetime_;
};

}  // namespace dlock::redis
