#include "backends/redis/requests/release_request.hpp"

#include <memory>
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

class Release : public std::enable_shared_from_this<Release> {
 public:
  Release(Servers& servers, Line line, LockKind kind, std::string lock_key, std::string value, bool leave,
          TimePoint deadline, std::function<void(Server*, Result<ReleaseAnswer>)> done)
      : servers_(servers),
        line_(line),
        space_(kind),
        lock_key_(std::move(lock_key)),
        value_(std::move(value)),
        leave_(leave),
        deadline_(deadline),
        done_(std::move(done)) {}

  void ask() {
    (void)servers_.run(
        line_, lock_key_, release_script(space_), release_words(servers_.options(), space_, lock_key_, value_, leave_),
        deadline_,
        [self = shared_from_this()](Server* server, const Result<Reply>& reply, TimePoint) {
          self->answered(server, reply.ok() ? read_release(reply.value()) : reply.failure());
        },
        AtTheEnd::sent);
  }

 private:
  void answered(Server* server, Result<ReleaseAnswer> answer) {
    // What became of the value is known from the first answer; the rest is for the waiters.
    const bool more = answer.ok() && answer.value().more;
    if (!first_) first_.emplace(std::move(answer));
    if (more && servers_.executor().now() < deadline_) return ask();
    done_(server, *std::move(first_));
  }

  Servers& servers_;
  const Line line_;
  const LockKind space_;
  const std::string lock_key_;
  const std::string value_;
  const bool leave_;
  const TimePoint deadline_;
  const std::function<void(Server*, Result<ReleaseAnswer>)> done_;
  std::optional<Result<ReleaseAnswer>> first_;
};

}  // namespace

void request_release(Servers& servers, Line line, LockKind kind, std::string lock_key, std::string value, bool leave,
                     TimePoint deadline, std::function<void(Server*, Result<ReleaseAnswer>)> done) {
  std::make_shared<Release>(servers, line, kind, std::move(lock_key), std::move(value), leave, deadline,
                            std::move(done))
      ->ask();
}

void release_at_the_end(Servers& servers, LockKind kind, const std::string& lock_key, const std::string& value) {
  servers.of(lock_key)
      .line(Line::acquires)
      .last_word(release_script(kind), release_words(servers.options(), kind, lock_key, value, true));
}

Cleanup::Ask release_requests(Servers& servers, std::string client, std::function<void()> publish_forbidden) {
  using Reason = Cleanup::Reason;
  return [&servers, client = std::move(client), publish_forbidden = std::move(publish_forbidden)](
             const Cleanup::Claim& claim, Reason reason, TimePoint deadline, Cleanup::Answer done) {
    const bool leave = reason == Reason::give_up;
    std::string key = lock_key(servers.options(), claim.name, claim.kind);
    // Who gave up asks again and again, as waiters do.
    Server& first = servers.of(key);
    if (leave && !first.outage().may_ask()) {
      return first.commands().answer_later([done = std::move(done), why = first.outage().why()] { done(why); });
    }
    request_release(
        servers, leave ? Line::acquires : Line::common, claim.kind, std::move(key), value_of(client, claim.owner),
        leave, deadline,
        [leave, publish_forbidden, done = std::move(done)](Server* server, const Result<ReleaseAnswer>& answer) {
          if (!answer.ok()) {
            if (server != nullptr) server->outage().failed(answer.failure());
            return done(answer.failure());
          }
          server->outage().answered(leave || answer.value().was == ReleaseAnswer::Was::ours);
          if (!answer.value().may_publish) publish_forbidden();
          done(answer.value().was == ReleaseAnswer::Was::ours);
        });
  };
}

}  // namespace dlock::redis
