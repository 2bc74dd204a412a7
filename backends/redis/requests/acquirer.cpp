#include "backends/redis/requests/acquirer.hpp"

#include <algorithm>
#include <memory>
#include <utility>

#include "backends/redis/requests/keys.hpp"
#include "backends/redis/requests/release_request.hpp"
#include "backends/redis/requests/scripts.hpp"
#include "backends/redis/timing.hpp"

namespace dlock::redis {

using std::chrono::nanoseconds;

namespace {

std::string_view name_of(AcquireMode mode) {
  switch (mode) {
    case AcquireMode::try_once:
      return "try";
    case AcquireMode::queue:
      return "queue";
    case AcquireMode::blind:
      return "blind";
    case AcquireMode::mark:
      return "mark";
  }
  return "try";
}

Acquirer::Handler refusing_other_permits(const LockRequest& request, Acquirer::Handler done) {
  return [request, done = std::move(done)](Result<AcquireAnswer> answer, TimePoint sent) {
    if (answer.ok() && answer.value().other_permits) answer = other_permits(request, *answer.value().other_permits);
    done(std::move(answer), sent);
  };
}

}  // namespace

Grant grant_of(const LockRequest& request, const AcquireAnswer& answer, TimePoint sent) {
  return {request.name,  request.owner, answer.token, lease_valid_until(sent, request.lease),
          request.lease, request.kind,  request.mode};
}

// A grant that the replicas have not confirmed yet.
struct Acquirer::Granted {
  LockKind kind;
  std::string lock_key;
  std::string value;
  nanoseconds lease;
  TimePoint deadline;
  AcquireAnswer answer;
  TimePoint sent;
  Handler done;
};

std::uint64_t Acquirer::start(const LockRequest& request, Place place, TimePoint deadline, Handler done) {
  const Options& options = topology_.options();
  std::string key = lock_key(options, request.name, request.kind);
  if (request.wait) {
    Node& node = topology_.node_of(key);
    if (!node.outage().may_ask()) {
      node.commands().answer_later([done = std::move(done), why = node.outage().why()] { done(why, {}); });
      return 0;
    }
  }
  topology_.in_use(request.owner, std::max<nanoseconds>(request.lease, alive_for));
  const std::string elected = request.kind == LockKind::election ? holder_text(request) : std::string();
  Command words = with_keys(key, {Key::lock, Key::queue, Key::alive, Key::fence});
  add_value(words, client_, request.owner);
  words.add({in_milliseconds(request.lease), name_of(place.mode),
             in_milliseconds(place.mode == AcquireMode::mark ? mark_for : alive_for), in_milliseconds(grant_for),
             elected.empty() ? std::string_view(request.holder) : elected, std::to_string(place.ticket)});
  const Script& script = acquire_script(request.kind);
  if (request.kind == LockKind::read_write) words.add({"0", request.mode == Mode::shared ? "1" : "0"});
  if (request.kind == LockKind::semaphore) {
    words.add({std::to_string(request.permits), "1"});
    done = refusing_other_permits(request, std::move(done));
  }
  for (const std::string& each : publish_arguments(options, key)) words.add(each);
  Topology::Handler answered;
  if (options.replicas_ack == 0) {
    answered = [done = std::move(done)](Node* node, const Result<Reply>& reply, TimePoint sent) {
      done(read(node, reply), sent);
    };
  } else {
    const auto granted = std::make_shared<Granted>(
        Granted{request.kind, key, value_of(client_, request.owner), request.lease, deadline, {}, {}, std::move(done)});
    answered = [this, granted](Node* node, const Result<Reply>& reply, TimePoint sent) {
      auto answer = read(node, reply);
      if (!answer.ok() || !answer.value().granted) return granted->done(std::move(answer), sent);
      granted->answer = answer.value();
      granted->sent = sent;
      wait_for_replicas(*node, granted);
    };
  }
  return topology_.send(key, {.script = &script, .words = std::move(words), .line = Line::acknowledged}, deadline,
                        std::move(answered));
}

Result<AcquireAnswer> Acquirer::read(Node* node, const Result<Reply>& reply) {
  if (!reply.ok()) {
    if (node != nullptr) node->outage().failed(reply.failure());
    return reply.failure();
  }
  auto answer = read_acquire(reply.value());
  // Grants and places in the queue are writes. The answer that a different owner has the lock needs only a read.
  const bool wrote = answer.ok() && (answer.value().granted || answer.value().rank);
  if (wrote) node->line(Line::acknowledged).proven();
  node->outage().answered(wrote);
  return answer;
}

void Acquirer::wait_for_replicas(Node& node, std::shared_ptr<Granted> granted) {
  const std::uint64_t wanted = topology_.replicas_wanted();
  node.replica_acks().count(wanted, granted->lease / 3, granted->deadline,
                            [this, granted, wanted](const Result<std::uint64_t>& replicas) {
                              if (!replicas.ok()) return take_back(granted, replicas.failure());
                              if (replicas.value() >= wanted) return granted->done(granted->answer, granted->sent);
                              take_back(granted, too_few_replicas(replicas.value(), wanted, "the lock"));
                            });
}

// Releases before it reports, because the next attempt has the same value.
void Acquirer::take_back(std::shared_ptr<Granted> granted, Failure why) {
  request_release(topology_,
                  {granted->kind, granted->lock_key, granted->value, true, Line::acknowledged, granted->deadline},
                  [granted, why = std::move(why)](Node*, const Result<ReleaseAnswer>& answer) {
                    Failure failure = why;
                    if (!answer.ok()) {
                      failure.code = errc::ambiguous;
                    } else if (failure.code == errc::ambiguous) {
                      failure.code = errc::unavailable;
                    }
                    granted->done(std::move(failure), granted->sent);
                  });
}

}  // namespace dlock::redis
