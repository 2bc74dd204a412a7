#include "backends/redis/sentinel/sentinels.hpp"

#include <algorithm>
#include <set>
#include <string>
#include <utility>

#include "backends/common/reconnect.hpp"
#include "backends/redis/connection/command_client.hpp"

namespace dlock::redis {

namespace {

using namespace std::chrono_literals;

constexpr auto query_timeout = 500ms;  // of one sentinel
constexpr auto monitor_period = 1s;
// A sentinel that was reset lists no replicas until it sends the next INFO to the master: these are ten seconds apart.
constexpr auto fewer_replicas_after = 15s;
// After a failover every sentinel that is not cut off knows it within a few seconds.
constexpr auto set_up_anew_after = 1min;

Options options_at(const common::Host& host, const Options& of_client) {
  Options options = of_client;
  const SentinelOptions sentinel = *std::move(options.sentinel);
  options.sentinel.reset();
  options.any_role = true;
  options.host = host;
  options.user = sentinel.user;
  options.password = sentinel.password;
  options.password_file = sentinel.password_file;
  options.tls = sentinel.tls;
  options.db = 0;
  options.connect_timeout = query_timeout;
  return options;
}

}  // namespace

struct Sentinels::Sentinel final : common::ConnectionObserver {
  Sentinel(const Sentinels& sentinels, const common::Host& host, std::string known_id, bool is_learnt)
      : options(options_at(host, sentinels.options_)),
        id(std::move(known_id)),
        learnt(is_learnt),
        commands(sentinels.executor_, options, sentinels.streams_, this) {}

  void connected() override {}
  // The next query connects again.
  void broken(const Failure& why) override { commands.rest(why); }

  // Fewer replicas than before count when they were listed for a while.
  void record_replicas(std::uint32_t listed, TimePoint now) {
    if (listed < replicas) {
      fewer_since = std::min(fewer_since, now);
      if (now < saturating_add(fewer_since, fewer_replicas_after)) return;
    }
    replicas = listed;
    fewer_since = TimePoint::max();
  }

  const Options options;
  std::string id;     // empty: unknown
  const bool learnt;  // from another sentinel
  CommandClient commands;
  int in_flight = 0;  // queries
  bool lost = false;  // it did not answer the last query, or is the same as another one
  std::uint32_t replicas = 0;
  TimePoint fewer_since = TimePoint::max();
};

struct Sentinels::Query {
  std::vector<Handler> callers = {};  // none: it is the monitor's
  std::size_t sent = 0;
  std::optional<SentinelReply> latest = std::nullopt;  // the one with the highest epoch
  std::size_t behind = 0;                              // replies with an earlier epoch than ours
  Failure problem = {};                                // of the sentinels that did not help
};

Sentinels::Sentinels(Executor& executor, Options options, StreamFactory streams)
    : executor_(executor), options_(std::move(options)), streams_(std::move(streams)), monitor_timer_(executor) {
  for (const common::Host& host : options_.sentinel->hosts) add(host, "", false);
}

Sentinels::~Sentinels() = default;

void Sentinels::add(const common::Host& host, const std::string& id, bool learnt) {
  const bool known = std::any_of(sentinels_.begin(), sentinels_.end(), [&](const auto& each) {
    return each->options.host == host || (!id.empty() && each->id == id);
  });
  if (known || sentinels_.size() >= most_sentinels) return;
  sentinels_.push_back(std::make_unique<Sentinel>(*this, host, id, learnt));
}

void Sentinels::locate(Handler done) {
  if (!query_) start_query();
  query_->callers.push_back(std::move(done));
}

void Sentinels::start_query() {
  query_ = std::make_unique<Query>();
  // In a task of its own: the connection of a sentinel that is removed may be on the call stack now.
  executor_.post(lifetime_.guard([this] {
    std::erase_if(sentinels_, [](const auto& each) { return each->learnt && each->lost && each->in_flight == 0; });
    if (!query_->callers.empty()) {
      std::stable_partition(sentinels_.begin(), sentinels_.end(), [](const auto& each) { return !each->lost; });
    }
    query_next();
  }));
}

void Sentinels::query_next() {
  if (query_->sent < sentinels_.size()) {
    return send(*sentinels_[query_->sent++], [this](const SentinelReply& reply) { on_reply(reply); });
  }
  // The service was set up anew if most sentinels have an earlier epoch, though they had time to learn ours. Of the
  // learnt ones only those that answer count.
  const auto counting = std::count_if(sentinels_.begin(), sentinels_.end(),
                                      [](const auto& each) { return !each->learnt || !each->lost; });
  const bool set_up_anew = 2 * query_->behind > static_cast<std::size_t>(counting) &&
                           executor_.now() >= saturating_add(epoch_since_, set_up_anew_after);
  const auto latest = query_->latest;
  if (latest && (set_up_anew || latest->epoch >= epoch_)) return found(*latest);
  // Final only where all sentinels agree: one that does not answer may know the master.
  Failure why = query_->problem;
  if (why.code == errc::invalid_argument) {
    why.detail.insert(0, "service_name: no sentinel knows such a service: ");
  } else {
    if (why.code != errc::access_denied) why.code = errc::unavailable;
    why.detail.insert(0, "no sentinel knows the master: ");
  }
  finish_query(why);
}

void Sentinels::send(Sentinel& to, std::function<void(const SentinelReply&)> done) {
  ++to.in_flight;
  const std::vector<Command> commands = sentinel_commands(options_.sentinel->service);
  const auto replied = [this, &to, done = std::move(done)](const SentinelReply& reply) {
    --to.in_flight;
    to.lost = !reply.master && !common::is_final_refusal(*reply.problem);
    if (!reply.id.empty()) {
      to.id = reply.id;
      for (const auto& each : sentinels_) each->lost |= each->learnt && each.get() != &to && each->id == to.id;
    }
    if (reply.epoch) to.record_replicas(reply.replicas, executor_.now());
    if (to.lost && to.in_flight == 0) to.commands.rest(*reply.problem);
    done(reply);
  };
  // The replies arrive in the order of the commands, failures included.
  const auto replies = std::make_shared<std::vector<Result<Reply>>>();
  for (const Command& command : commands) {
    (void)to.commands.request(
        command, saturating_add(executor_.now(), query_timeout),
        [replies, replied, &to, count = commands.size()](Result<Reply> reply, TimePoint) {
          replies->push_back(std::move(reply));
          if (replies->size() == count) replied(read_sentinel(to.options.host, *replies));
        },
        About::locks);
  }
}

void Sentinels::on_reply(const SentinelReply& reply) {
  const bool all_replicas = options_.sentinel->all_replicas;
  std::optional<Failure> problem = reply.problem;
  // Without the right to query the epoch, every address counts. replicas_ack=all needs that right.
  if (reply.master && problem && problem->code == errc::access_denied && !all_replicas) problem.reset();
  if (!problem) {
    for (const auto& [host, id] : reply.others) add(host, id, true);
    const std::uint64_t epoch = reply.epoch.value_or(epoch_);
    if (!query_->latest || epoch > query_->latest->epoch) query_->latest = reply;
    if (epoch < epoch_) {
      ++query_->behind;
      problem = {errc::unavailable, "it does not know of the latest failover"};
    } else if (!all_replicas || query_->callers.empty()) {
      return found(reply);
    }  // else any of the other sentinels may list more replicas
  }
  if (problem) {
    const std::string name = reply.sentinel.to_string();
    if (!problem->detail.starts_with(name)) problem->detail.insert(0, name + ": ");
    Failure& sum = query_->problem;
    const bool first = sum.detail.empty();
    if (!first && problem->code != sum.code) problem->code = errc::unavailable;
    sum = {problem->code, sum.detail + (first ? "" : "; ") + problem->detail};
  }
  query_next();
}

void Sentinels::found(const SentinelReply& reply) {
  const bool moves = reply.epoch != epoch_ || !master_;
  if (reply.epoch.value_or(epoch_) != epoch_) epoch_since_ = executor_.now();
  epoch_ = reply.epoch.value_or(epoch_);
  for (const auto& each : sentinels_) {
    if (each->lost) each->record_replicas(0, executor_.now());
  }
  if (moves && master_ != reply.master) {
    master_ = reply.master;
    const Lifetime::Watch life = lifetime_.watch();
    for (const auto& [follower, moved] : std::vector(followers_)) {  // a copy: each may end others
      const bool follows = std::any_of(followers_.begin(), followers_.end(),
                                       [follower = follower](const auto& each) { return each.first == follower; });
      if (follows) moved(*reply.master);
      if (life.over()) return;
    }
  }
  finish_query(*reply.master);
}

void Sentinels::finish_query(const Result<common::Host>& answer) {
  // The next query begins with the next sentinel, because the caller may repeat it for a wrong answer.
  const auto next = query_->sent < sentinels_.size() ? query_->sent : 1;
  std::rotate(sentinels_.begin(), sentinels_.begin() + static_cast<std::ptrdiff_t>(next), sentinels_.end());
  const auto query = std::move(query_);
  const Lifetime::Watch life = lifetime_.watch();
  for (const Handler& caller : query->callers) {
    caller(answer);
    if (life.over()) return;
  }
}

void Sentinels::in_use(const OwnerId& owner, std::chrono::nanoseconds time) {
  users_[owner] = saturating_add(executor_.now(), time);
  if (!monitor_timer_.armed()) monitor();
}

void Sentinels::monitor() {
  std::erase_if(users_, [now = executor_.now()](const auto& user) { return user.second <= now; });
  if (users_.empty()) return;
  monitor_timer_.arm(saturating_add(executor_.now(), monitor_period), [this] { monitor(); });
  if (master_ && !query_) start_query();
}

std::uint32_t Sentinels::replicas_wanted() const {
  std::uint32_t wanted = options_.replicas_ack;
  if (!options_.sentinel->all_replicas) return wanted;
  for (const auto& each : sentinels_) wanted = std::max(wanted, each->replicas);
  return wanted;
}

void Sentinels::survey(const std::function<void(const std::vector<SentinelReply>&)>& done) {
  const auto replies = std::make_shared<std::vector<SentinelReply>>();
  for (const auto& each : sentinels_) {
    send(*each, [replies, done, count = sentinels_.size()](const SentinelReply& reply) {
      replies->push_back(reply);
      if (replies->size() < count) return;
      // One sentinel may be listed by two addresses.
      std::set<std::string> ids;
      std::erase_if(*replies, [&](const auto& one) { return !one.id.empty() && !ids.insert(one.id).second; });
      done(*replies);
    });
  }
}

}  // namespace dlock::redis
