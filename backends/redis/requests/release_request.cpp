#include "backends/redis/requests/release_request.hpp"

#include <optional>
#include <utility>

#include "backends/redis/requests/acquirer.hpp"
#include "backends/redis/requests/scripts.hpp"
#include "backends/redis/timing.hpp"

namespace dlock::redis {

namespace {

Command release_words(const Options& options, LockKind kind, const std::string& lock_key, const std::string& value,
                      bool leave) {
  Command words = several_hold(kind) ? with_keys(lock_key, {Key::lock, Key::queue, Key::alive, Key::fence})
                                     : with_keys(lock_key, {Key::lock, Key::queue, Key::alive});
  words.add({value, in_milliseconds(grant_for), leave ? "leave" : "stay"});
  for (const std::string& each : publish_arguments(options, lock_key)) words.add(each);
  return words;
}

// first: the answer of the first call, if this is a later one, which only removes dead waiters.
void release(Topology& topology, const ReleaseRequest& request, std::optional<Result<ReleaseAnswer>> first,
             std::function<void(Node*, Result<ReleaseAnswer>)> done) {
  (void)topology.send(
      request.lock_key,
      {.script = &release_script(request.kind),
       .words = release_words(topology.options(), request.kind, request.lock_key, request.value, request.leave),
       .line = request.line,
       .at_the_end = AtTheEnd::sent},
      request.deadline,
      [&topology, request, first = std::move(first), done = std::move(done)](Node* node, const Result<Reply>& reply,
                                                                             TimePoint) {
        const Result<ReleaseAnswer> answer = reply.ok() ? read_release(reply.value()) : reply.failure();
        const Result<ReleaseAnswer>& known = first ? *first : answer;
        const bool more = answer.ok() && answer.value().more && topology.executor().now() < request.deadline;
        more ? release(topology, request, known, done) : done(node, known);
      });
}

}  // namespace

void request_release(Topology& topology, const ReleaseRequest& request,
                     std::function<void(Node*, Result<ReleaseAnswer>)> done) {
  release(topology, request, std::nullopt, std::move(done));
}

void release_at_the_end(Topology& topology, LockKind kind, const std::string& lock_key, const std::string& value) {
  topology.node_of(lock_key)
      .line(Line::acknowledged)
      .last_word(release_script(kind), release_words(topology.options(), kind, lock_key, value, true));
}

Cleanup::Ask release_requests(Topology& topology, std::string client, std::function<void()> publish_forbidden) {
  using Reason = Cleanup::Reason;
  return [&topology, client = std::move(client), publish_forbidden = std::move(publish_forbidden)](
             const Cleanup::Claim& claim, Reason reason, TimePoint deadline, Cleanup::Answer done) {
    const bool leave = reason == Reason::give_up;
    std::string key = lock_key(topology.options(), claim.name, claim.kind);
    // A waiter that gave up retries its release, so an outage limits it like a waiter.
    Node& first = topology.node_of(key);
    if (leave && !first.outage().may_ask()) {
      return first.commands().answer_later([done = std::move(done), why = first.outage().why()] { done(why); });
    }
    request_release(
        topology,
        {claim.kind, std::move(key), value_of(client, claim.owner), leave, leave ? Line::acknowledged : Line::common,
         deadline},
        [leave, publish_forbidden, done = std::move(done)](Node* node, const Result<ReleaseAnswer>& answer) {
          if (!answer.ok()) {
            if (node != nullptr) node->outage().failed(answer.failure());
            return done(answer.failure());
          }
          // If several calls were made, the answer is the first one's; the last one may have reached no node.
          if (node != nullptr) node->outage().answered(leave || answer.value().was == ReleaseAnswer::Was::ours);
          if (!answer.value().may_publish) publish_forbidden();
          done(answer.value().was == ReleaseAnswer::Was::ours);
        });
  };
}

}  // namespace dlock::redis
