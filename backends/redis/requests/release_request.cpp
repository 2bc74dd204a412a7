#include "backends/redis/requests/release_request.hpp"

#include <memory>
#include <optional>
#include <utility>

#include "backends/redis/requests/acquirer.hpp"
#include "backends/redis/requests/scripts.hpp"
#include "backends/redis/timing.hpp"

namespace dlock::redis {

namespace {

Command release_words(LockKind kind, const std::string& lock_key, const std::string& value, bool leave) {
  Command words = several_hold(kind) ? with_keys(lock_key, {Key::lock, Key::queue, Key::alive, Key::fence})
                                     : with_keys(lock_key, {Key::lock, Key::queue, Key::alive});
  words.add({value, in_milliseconds(grant_for), leave ? "leave" : "stay"});
  return words;
}

class Release : public std::enable_shared_from_this<Release> {
 public:
  Release(Topology& topology, Line line, LockKind kind, std::string lock_key, std::string value, bool leave,
          TimePoint deadline, std::function<void(Node*, Result<ReleaseAnswer>)> done)
      : topology_(topology),
        line_(line),
        space_(kind),
        lock_key_(std::move(lock_key)),
        value_(std::move(value)),
        leave_(leave),
        deadline_(deadline),
        done_(std::move(done)) {}

  void ask() {
    (void)topology_.send(lock_key_,
                         {.script = &release_script(space_, topology_.options().cluster.has_value()),
                          .words = release_words(space_, lock_key_, value_, leave_),
                          .line = line_,
                          .at_the_end = AtTheEnd::sent},
                         deadline_, [self = shared_from_this()](Node* node, const Result<Reply>& reply, TimePoint) {
                           self->answered(node, reply.ok() ? read_release(reply.value()) : reply.failure());
                         });
  }

 private:
  void answered(Node* node, Result<ReleaseAnswer> answer) {
    // What became of the value is known from the first answer; the rest is for the waiters.
    const bool more = answer.ok() && answer.value().more;
    if (!first_) first_.emplace(std::move(answer));
    if (more && topology_.executor().now() < deadline_) return ask();
    done_(node, *std::move(first_));
  }

  Topology& topology_;
  const Line line_;
  const LockKind space_;
  const std::string lock_key_;
  const std::string value_;
  const bool leave_;
  const TimePoint deadline_;
  const std::function<void(Node*, Result<ReleaseAnswer>)> done_;
  std::optional<Result<ReleaseAnswer>> first_;
};

}  // namespace

void request_release(Topology& topology, Line line, LockKind kind, std::string lock_key, std::string value, bool leave,
                     TimePoint deadline, std::function<void(Node*, Result<ReleaseAnswer>)> done) {
  std::make_shared<Release>(topology, line, kind, std::move(lock_key), std::move(value), leave, deadline,
                            std::move(done))
      ->ask();
}

void release_at_the_end(Topology& topology, LockKind kind, const std::string& lock_key, const std::string& value) {
  topology.node_of(lock_key)
      .line(Line::acknowledged)
      .last_word(release_script(kind, topology.options().cluster.has_value()),
                 release_words(kind, lock_key, value, true));
}

Cleanup::Ask release_requests(Topology& topology, std::string client, std::function<void()> publish_forbidden) {
  using Reason = Cleanup::Reason;
  return [&topology, client = std::move(client), publish_forbidden = std::move(publish_forbidden)](
             const Cleanup::Claim& claim, Reason reason, TimePoint deadline, Cleanup::Answer done) {
    const bool leave = reason == Reason::give_up;
    std::string key = lock_key(topology.options(), claim.name, claim.kind);
    // Who gave up asks again and again, as waiters do.
    Node& first = topology.node_of(key);
    if (leave && !first.outage().may_ask()) {
      return first.commands().answer_later([done = std::move(done), why = first.outage().why()] { done(why); });
    }
    request_release(
        topology, leave ? Line::acknowledged : Line::common, claim.kind, std::move(key), value_of(client, claim.owner),
        leave, deadline,
        [leave, publish_forbidden, done = std::move(done)](Node* node, const Result<ReleaseAnswer>& answer) {
          if (!answer.ok()) {
            if (node != nullptr) node->outage().failed(answer.failure());
            return done(answer.failure());
          }
          node->outage().answered(leave || answer.value().was == ReleaseAnswer::Was::ours);
          if (!answer.value().may_publish) publish_forbidden();
          done(answer.value().was == ReleaseAnswer::Was::ours);
        });
  };
}

}  // namespace dlock::redis
