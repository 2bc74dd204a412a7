// Asks Redis Sentinels where the master of a service is, and learns when another server becomes the master.
//
// The sentinels are asked one after the other, each with half a second. An answer of an earlier epoch than one that was
// seen comes from a sentinel that does not know of the last failover, and is ignored; only a later epoch moves
// connections that stand. Sentinels that one of them knows are learnt.
//
// A client of a master that was merely forgotten (it was cut off, another took its place, it came back) hears nothing
// from it: so +switch-master is subscribed to at one sentinel, and while the client has locks or waits for one it asks
// every second, each time another sentinel: the one that it listens to may be cut off, too.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include <dlock/spi/executor.hpp>
#include <dlock/spi/lifetime.hpp>
#include <dlock/spi/result.hpp>
#include <dlock/token.hpp>

#include "backends/redis/connection/command_client.hpp"
#include "backends/redis/connection/subscriber.hpp"
#include "backends/redis/connection/wire.hpp"
#include "backends/redis/options.hpp"
#include "backends/redis/sentinel/service_state.hpp"

namespace dlock::redis {

// In tasks only.
class Sentinels final : public Subscriber::User {
 public:
  using Handler = std::function<void(const Result<common::Host>&)>;

  // Who uses a connection to a master.
  class Follower {
   public:
    Follower() = default;
    Follower(const Follower&) = delete;
    Follower& operator=(const Follower&) = delete;
    // Another server is the master now. May destroy the follower, and others.
    virtual void master_moved(const common::Host& to) = 0;

   protected:
    ~Follower() = default;
  };

  // options: of the client, which name the service and the first sentinels. wires: how connections to sentinels are
  // made. The executor outlives it.
  Sentinels(Executor& executor, Options options, WireFactory wires);
  ~Sentinels();

  // Asks for the master's address; callers that ask meanwhile share the answer. The handler is called once, never
  // inside the call, and not when this has gone.
  void locate(Handler done);
  // As long as it follows, it is told.
  void follow(Follower& follower) { followers_.insert(&follower); }
  void unfollow(Follower& follower) { followers_.erase(&follower); }

  // This owner has a lock, or waits for one, for so long from now on; or no longer.
  void in_use(const OwnerId& owner, std::chrono::nanoseconds time);
  void done_with(const OwnerId& owner) { users_.erase(owner); }

  // How many replicas are to acknowledge a write: with replicas_ack=all as many as any sentinel lists, down or not. One
  // that was reset lists none for a while; that it lists fewer counts once it has said so for long enough.
  [[nodiscard]] std::uint32_t replicas_wanted() const;
  // As far as is known.
  [[nodiscard]] const std::optional<common::Host>& master() const noexcept { return master_; }

  // What each sentinel that is known says, asked now.
  struct Said {
    common::Host sentinel;
    Result<ServiceState> state;
  };
  void survey(std::function<void(std::vector<Said>)> done);

 private:
  class Sentinel;
  struct Question;
  struct Whereabouts {
    common::Host master;
    std::uint64_t epoch = 0;
    bool moves = false;        // connections that stand
    std::size_t sentinel = 0;  // that says so
  };

  void add(const SentinelId& found, bool learnt);
  void forget_lost_ones();
  void look();
  void begin(std::size_t first);
  void ask_next();
  void ask(Sentinel& sentinel, std::function<void(const Question&)> done);
  void settle(Sentinel& sentinel, const Question& question, const std::function<void(const Question&)>& done);
  void retire(Sentinel& sentinel);
  void refused(std::size_t index, Failure why);
  void answered(std::size_t index, const Question& question);
  void found(const Whereabouts& said);
  void conclude(const Result<common::Host>& answer);
  [[nodiscard]] bool is_set_up_anew() const;
  [[nodiscard]] Failure nobody_knows() const;
  void master_is(const common::Host& host);
  void listen_at(std::size_t index);
  void look_again();

  void on_subscribed(const std::string& channel) override;
  void on_message(const std::string& channel, const std::string& text) override;
  void on_lost(const std::string& channel) override;
  void on_forbidden(const Failure& /*why*/) override {}  // then asking has to do

  Executor& executor_;
  const Options options_;
  const WireFactory wires_;
  std::vector<std::unique_ptr<Sentinel>> sentinels_;  // those of the URL first
  // What is to be destroyed, but not from inside: it may be what calls us.
  std::vector<std::unique_ptr<Sentinel>> gone_sentinels_;
  std::vector<std::unique_ptr<CommandClient>> gone_;
  std::size_t first_ = 0;      // the one to ask first
  std::size_t next_look_ = 0;  // the one to ask where no caller waits for the answer
  TimePoint located_at_ = TimePoint::min();

  // The question under way.
  bool asking_ = false;
  bool again_ = false;  // ask once more when it is answered
  std::vector<Handler> askers_;
  std::size_t asked_from_ = 0;
  std::size_t asked_ = 0;
  std::vector<Failure> failures_;
  std::vector<Whereabouts> behind_;  // what was said by those whose epoch is an earlier one
  std::optional<Whereabouts> best_;  // where all are asked: the latest so far

  std::optional<common::Host> master_;
  std::uint64_t epoch_ = 0;  // what is from an earlier one counts for nothing
  TimePoint epoch_since_ = TimePoint::min();
  TimePoint answered_at_ = TimePoint::min();
  std::set<Follower*> followers_;

  std::unique_ptr<Subscriber> subscriber_;
  bool subscribed_ = false;
  std::size_t listens_at_ = 0;
  TimePoint listens_since_;

  std::unordered_map<OwnerId, TimePoint> users_;
  Timer look_timer_;
  Lifetime lifetime_;
};

}  // namespace dlock::redis
