#include "backends/redis/cluster/cluster.hpp"

#include <algorithm>
#include <utility>

#include "backends/redis/cluster/cluster_findings.hpp"
#include "backends/redis/connection/redirection.hpp"
#include "backends/redis/connection/server_error.hpp"
#include "backends/redis/hash_slot.hpp"
#include "util/names.hpp"

namespace dlock::redis {

using std::chrono::milliseconds;
using std::chrono::nanoseconds;
using Type = Reply::Type;

namespace {

constexpr std::size_t most_nodes = 1000;
constexpr nanoseconds patience_per_node = milliseconds(500);
// Between two reads of the map.
constexpr nanoseconds shortest_pace = milliseconds(100);
constexpr nanoseconds longest_pace = milliseconds(250);
constexpr nanoseconds longest_pause = milliseconds(250);
constexpr nanoseconds freshness = std::chrono::seconds(1);
constexpr int most_redirections = 5;  // of a request

}  // namespace

struct Cluster::Run {
  Run(Executor& executor, std::uint64_t number, std::string_view key, Request what, TimePoint until, Handler then)
      : id(number),
        slot(slot_of(key)),
        request(std::move(what)),
        deadline(until),
        done(std::move(then)),
        timer(executor) {}

  const std::uint64_t id;
  const std::uint16_t slot;
  const Request request;
  const TimePoint deadline;
  Handler done;
  int redirections = 0;
  bool redirected = false;  // to `at`, which may have no slots by the map
  Node* at = nullptr;       // nullptr: it waits
  std::uint64_t there = 0;  // its id there
  Node* because_of = nullptr;
  Failure why;  // of the wait
  Backoff backoff{longest_pause};
  Timer timer;
};

struct Cluster::Asker {
  Asker(Executor& executor, MastersHandler then) : done(std::move(then)), timer(executor) {}
  MastersHandler done;
  Timer timer;
};

Cluster::Cluster(BackendHost& host, const Options& options, StreamFactory streams, Node::User& user)
    : Topology(host.executor(), options),
      streams_(std::move(streams)),
      news_(host),
      user_(user),
      owners_(slots),
      refresh_timer_(host.executor()),
      fresh_timer_(host.executor()) {}

Cluster::~Cluster() = default;

// --- Nodes -----------------------------------------------------------------------------------------------------------

// nullptr: too many nodes are known, and the URL does not name this one.
Node* Cluster::node_at(const common::Host& host) {
  const std::string address = host.to_string();
  const auto found = nodes_.find(address);
  if (found != nodes_.end()) return found->second.get();
  const auto& named = options().cluster->hosts;
  if (nodes_.size() >= most_nodes && std::find(named.begin(), named.end(), host) == named.end()) return nullptr;
  Options at_host = options();
  at_host.host = host;
  return nodes_
      .emplace(address,
               std::make_unique<Node>(executor(), std::move(at_host), streams_, news_, static_cast<Node::User&>(*this)))
      .first->second.get();
}

Node& Cluster::node_of(std::string_view key) {
  Node* const owner = owners_[slot_of(key)];
  return owner != nullptr ? *owner : *node_at(options().cluster->hosts.front());
}

bool Cluster::is_master(const Node& node) const {
  return std::find(owners_.begin(), owners_.end(), &node) != owners_.end();
}

std::vector<Node*> Cluster::known_masters() const {
  std::vector<Node*> out;
  for (const auto& [address, node] : nodes_) {
    if (is_master(*node)) out.push_back(node.get());
  }
  return out;
}

Node* Cluster::master_at(const common::Host& host) {
  const auto found = nodes_.find(host.to_string());
  return found != nodes_.end() && is_master(*found->second) ? found->second.get() : nullptr;
}

void Cluster::stop() {
  for (const auto& [address, node] : nodes_) node->stop();
  runs_.clear();
  refresh_timer_.disarm();
  fresh_timer_.disarm();
}

// --- Requests --------------------------------------------------------------------------------------------------------

std::uint64_t Cluster::send(std::string_view key, Request request, TimePoint deadline, Handler done) {
  const auto run = std::make_shared<Run>(executor(), ++last_id_, key, std::move(request), deadline, std::move(done));
  runs_.emplace(run->id, run);
  attempt(run);
  return run->id;
}

bool Cluster::withdraw(std::uint64_t id, Line /*line*/) {
  const auto found = runs_.find(id);
  if (found == runs_.end()) return false;
  const auto run = found->second;
  runs_.erase(found);
  return run->at == nullptr || run->at->line(run->request.line).withdraw(run->there);
}

void Cluster::attempt(const std::shared_ptr<Run>& run) {
  run->at = nullptr;
  Node* const owner = owners_[run->slot];
  run->redirected = false;
  if (owner != nullptr) return send_to(*owner, *run, false);
  if (known_ || !asking_) refresh();
  if (known_) {
    return pause(run, nullptr, {errc::unavailable, "no node of the cluster has slot " + std::to_string(run->slot)});
  }
  run->timer.arm(run->deadline, [this, run = std::weak_ptr<Run>(run)] {
    if (const auto late = run.lock()) finish(late, nullptr, no_map_in_time());
  });
}

Failure Cluster::no_map_in_time() const {
  return last_failure_.value_or(
      Failure{errc::unavailable, common::to_string(options().cluster->hosts) + ": no answer in time"});
}

void Cluster::send_to(Node& node, Run& run, bool asking) {
  run.at = &node;
  run.timer.disarm();
  run.there = node.send(
      run.request, run.deadline,
      [this, id = run.id](Result<Reply> reply, TimePoint sent) { answered(id, std::move(reply), sent); }, asking);
}

void Cluster::answered(std::uint64_t id, Result<Reply> reply, TimePoint sent) {
  const auto found = runs_.find(id);
  if (found == runs_.end()) return;
  const auto run = found->second;
  if (reply.ok() && reply.value().is(Type::error)) return follow(run, reply.value().text);
  if (!reply.ok()) refresh();
  finish(run, run->at, std::move(reply), sent);
}

// error: about the cluster; CommandClient handles all others.
void Cluster::follow(const std::shared_ptr<Run>& run, const std::string& error) {
  Node& at = *run->at;
  const ServerError kind = classify(error);
  const std::string said = at.options().host.to_string() + ": " + util::quoted(error);
  if (kind == ServerError::try_again || kind == ServerError::cluster_down) {
    const bool down = kind == ServerError::cluster_down;
    if (down) refresh();
    return pause(run, down ? &at : nullptr, {errc::unavailable, said});
  }
  const auto to = read_redirection(error, at.options().host);
  Node* const node = to && to->slot == run->slot ? node_at(to->to) : nullptr;
  if (node == nullptr) return finish(run, nullptr, Failure{errc::protocol, said + " is not a valid redirection"});
  if (!to->asks) {
    refresh();
    Node*& owner = owners_[run->slot];
    // Only the slot's recorded owner can have given it away.
    if (owner == nullptr || owner == &at) owner = node;
  }
  if (++run->redirections > most_redirections) {
    return finish(run, nullptr, Failure{errc::unavailable, "too many redirections, the last by " + said});
  }
  run->redirected = true;
  send_to(*node, *run, to->asks);
}

void Cluster::pause(const std::shared_ptr<Run>& run, Node* node, Failure why) {
  run->at = nullptr;
  run->because_of = node;
  run->why = std::move(why);
  const TimePoint again = saturating_add(executor().now(), run->backoff.next(executor()));
  run->timer.arm(std::min(again, run->deadline), [this, weak = std::weak_ptr<Run>(run), last = again >= run->deadline] {
    const auto paused = weak.lock();
    if (!paused) return;
    if (!last) return attempt(paused);
    const bool there = std::any_of(nodes_.begin(), nodes_.end(),
                                   [&](const auto& known) { return known.second.get() == paused->because_of; });
    finish(paused, there ? paused->because_of : nullptr, paused->why);
  });
}

void Cluster::finish(const std::shared_ptr<Run>& run, Node* node, Result<Reply> reply, TimePoint sent) {
  if (runs_.erase(run->id) == 0) return;
  run->timer.disarm();
  run->done(node, std::move(reply), sent);
}

// --- The map ---------------------------------------------------------------------------------------------------------

void Cluster::refresh() {
  if (asking_) {
    again_ = true;
    return;
  }
  if (refresh_timer_.armed()) return;
  refresh_timer_.arm(std::max(executor().now(), not_before_), [this] { read_map(); });
}

void Cluster::masters(TimePoint deadline, MastersHandler done) {
  const auto asker = std::make_shared<Asker>(executor(), std::move(done));
  asker->timer.arm(deadline, [this, weak = std::weak_ptr<Asker>(asker)] {
    const auto late = weak.lock();
    if (!late) return;
    (void)std::erase(askers_, late);
    late->done(no_map_in_time());
  });
  askers_.push_back(asker);
  refresh();
}

// Queries the masters, starting with a different one each time, then the hosts of the URL.
void Cluster::read_map() {
  asking_ = true;
  again_ = false;
  failure_.reset();
  overdue_ = false;
  candidates_ = options().cluster->hosts;
  std::reverse(candidates_.begin(), candidates_.end());
  const auto masters = known_masters();
  for (std::size_t i = 0; i < masters.size(); ++i) {
    const common::Host& host = masters[(turn_ + i) % masters.size()]->options().host;
    (void)std::erase(candidates_, host);
    candidates_.push_back(host);
  }
  ++turn_;
  ask_next();
}

void Cluster::ask_next() {
  if (candidates_.empty()) return concluded(*failure_);
  const common::Host host = std::move(candidates_.back());
  candidates_.pop_back();
  Node* const node = node_at(host);
  const TimePoint deadline = saturating_add(executor().now(), std::min(options().response_timeout, patience_per_node));
  (void)node->commands().request(
      {"CLUSTER", "SLOTS"}, deadline, [this, host, deadline](Result<Reply> reply, TimePoint) {
        auto ranges = reply.ok() ? read_slots(reply.value(), host) : reply.failure();
        if (ranges.ok() && ranges.value().empty()) {
          ranges = Failure{errc::unavailable, host.to_string() + ": the cluster has no slots (yet)"};
        }
        if (ranges.ok()) return concluded(ranges);
        overdue_ = overdue_ || executor().now() >= deadline;
        // A permanent failure says more than a node that did not answer.
        if (!failure_ || failure_->code == errc::unavailable || failure_->code == errc::ambiguous) {
          failure_ = ranges.failure();
          if (failure_->code == errc::ambiguous) failure_->code = errc::unavailable;  // a query changes nothing
        }
        ask_next();
      });
}

void Cluster::concluded(const Result<std::vector<SlotRange>>& map) {
  asking_ = false;
  last_failure_ = map.ok() ? std::nullopt : std::optional(map.failure());
  const TimePoint now = executor().now();
  if (map.ok()) take(map.value());
  not_before_ = saturating_add(now, random_between(shortest_pace, longest_pace, executor()));
  // Until the first map arrives, requests wait for a slow node until their deadlines.
  const bool patient = !known_ && overdue_ && map.failure().code == errc::unavailable;
  if (again_ || patient) refresh();
  const Lifetime::Watch life = lifetime_.watch();
  answer_askers(map);
  if (!life.over() && !patient) resume_runs(map);
  if (!life.over()) resubscribe();
  if (!life.over()) retire_nodes();
}

void Cluster::answer_askers(const Result<std::vector<SlotRange>>& map) {
  std::vector<common::Host> hosts;
  for (const Node* const master : known_masters()) hosts.push_back(master->options().host);
  const Lifetime::Watch life = lifetime_.watch();
  for (const auto& asker : std::exchange(askers_, {})) {
    asker->timer.disarm();
    map.ok() ? asker->done(hosts) : asker->done(map.failure());
    if (life.over()) return;
  }
}

// Continues requests that wait for the map, or for their next attempt.
void Cluster::resume_runs(const Result<std::vector<SlotRange>>& map) {
  std::vector<std::shared_ptr<Run>> waiting;
  for (const auto& [id, run] : runs_) {
    if (run->at == nullptr) waiting.push_back(run);
  }
  const Lifetime::Watch life = lifetime_.watch();
  for (const auto& run : waiting) {
    if (!runs_.contains(run->id) || run->at != nullptr) continue;
    known_ ? attempt(run) : finish(run, nullptr, map.failure());
    if (life.over()) return;
  }
}

void Cluster::take(const std::vector<SlotRange>& ranges) {
  std::fill(owners_.begin(), owners_.end(), nullptr);
  for (const SlotRange& range : ranges) {
    std::fill(owners_.begin() + range.first, owners_.begin() + range.last + 1, node_at(range.master));
  }
  known_ = true;
  ranges_ = ranges;
}

// Retires nodes that no longer have slots; their requests in flight fail. A node with a channel stays until the channel
// has moved.
void Cluster::retire_nodes() {
  if (!known_) return;
  executor().post(lifetime_.guard([this] {
    std::vector<Node*> leaving;
    for (const auto& [address, node] : nodes_) {
      const bool stays = (asking_ && !node->commands().idle()) || is_master(*node) ||
                         std::any_of(channels_.begin(), channels_.end(),
                                     [&node = node](const auto& each) { return each.second == node.get(); }) ||
                         std::any_of(runs_.begin(), runs_.end(), [&node = node](const auto& run) {
                           return run.second->at == node.get() && run.second->redirected;
                         });
      if (!stays) leaving.push_back(node.get());
    }
    const Lifetime::Watch life = lifetime_.watch();
    for (Node* const node : leaving) {
      const auto found = nodes_.find(node->options().host.to_string());
      retired_.push_back(std::move(found->second));
      nodes_.erase(found);  // new requests go elsewhere
      node->rest({errc::unavailable, node->options().host.to_string() + " has no slots of the cluster any more"});
      if (life.over()) return;
    }
    if (!leaving.empty()) executor().post(lifetime_.guard([this] { retired_.clear(); }));
  }));
}

// --- Channels --------------------------------------------------------------------------------------------------------

void Cluster::subscribe(const std::string& channel) {
  if (forbidden_ || channels_.contains(channel)) return;
  Node* const owner = owners_[slot_of(channel)];
  channels_.emplace(channel, owner);
  if (owner != nullptr)
    owner->subscriber().subscribe(channel);
  else
    refresh();
  if (!fresh_timer_.armed()) keep_fresh();
}

void Cluster::unsubscribe(const std::string& channel) {
  const auto found = channels_.find(channel);
  if (found == channels_.end()) return;
  if (found->second != nullptr) found->second->subscriber().unsubscribe(channel);
  channels_.erase(found);
  if (channels_.empty()) fresh_timer_.disarm();
}

void Cluster::proven(const std::string& channel) {
  const auto found = channels_.find(channel);
  if (found != channels_.end() && found->second != nullptr) found->second->subscriber().proven();
}

void Cluster::keep_fresh() {
  fresh_timer_.arm(saturating_add(executor().now(), freshness), [this] {
    refresh();
    keep_fresh();
  });
}

// Moves channels with their slots. A node that gave up a channel may still be the right one, so subscribes again.
void Cluster::resubscribe() {
  std::vector<std::string> moved;
  for (auto& [channel, node] : channels_) {
    Node* const owner = owners_[slot_of(channel)];
    if (owner != nullptr) owner->subscriber().subscribe(channel);
    if (owner == node) continue;
    if (node != nullptr) {
      node->subscriber().unsubscribe(channel);
      moved.push_back(channel);
    }
    node = owner;
  }
  const Lifetime::Watch life = lifetime_.watch();
  for (const std::string& channel : moved) {
    user_.on_lost(channel);
    if (life.over()) return;
  }
}

void Cluster::on_lost(const std::string& channel) {
  refresh();
  user_.on_lost(channel);
}

void Cluster::on_forbidden(const Failure& why) {
  if (!std::exchange(forbidden_, true)) user_.on_forbidden(why);
}

void Cluster::on_state(Node& node, NodeState state) {
  if (state == NodeState::down) refresh();
  user_.on_state(node, state);
}

void Cluster::diagnose(Backend::Handler<std::vector<Finding>> done) {
  redis::diagnose(*this, std::move(done));
}

}  // namespace dlock::redis
