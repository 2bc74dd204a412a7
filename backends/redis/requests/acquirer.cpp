#include "backends/redis/requests/acquirer.hpp"

#include <algorithm>
#include <memory>
#include <utility>

#include "backends/redis/requests/keys.hpp"
#include "backends/redis/requests/release_request.hpp"
#include "backends/redis/requests/scripts.hpp"
#include "backends/redis/timing.hpp"

namespace dlock::redis {

using std::chrono::milliseconds;
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

std::string in_milliseconds(nanoseconds d) {
  return std::to_string(std::max<std::int64_t>(std::chrono::ceil<milliseconds>(d).count(), 1));
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
  const Options& options = servers_.options();
  std::string key = lock_key(options, request.name, request.kind);
  if (request.wait) {
    Server& server = servers_.of(key);
    if (!server.outage().may_ask()) {
      server.commands().answer_later([done = std::move(done), why = server.outage().why()] { done(why, {}); });
      return 0;
    }
  }
  servers_.in_use(request.owner, std::max<nanoseconds>(request.lease, alive_for));
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
  if (options.replicas_ack == 0) {
    return servers_.run(Line::acquires, key, script, std::move(words), deadline,
                        [done = std::move(done)](Server* server, const Result<Reply>& reply, TimePoint sent) {
                          done(read(server, reply), sent);
                        });
  }
  const auto later = std::make_shared<Granted>(
      Granted{request.kind, key, value_of(client_, request.owner), request.lease, deadline, {}, {}, std::move(done)});
  return servers_.run(Line::acquires, key, script, std::move(words), deadline,
                      [this, later](Server* server, const Result<Reply>& reply, TimePoint sent) {
                        auto answer = read(server, reply);
                        if (!answer.ok() || !answer.value().granted) return later->done(std::move(answer), sent);
                        later->answer = answer.value();
                        later->sent = sent;
                        wait_for_replicas(*server, later);
                      });
}

Result<AcquireAnswer> Acquirer::read(Server* server, const Result<Reply>& reply) {
  if (!reply.ok()) {
    if (server != nullptr) server->outage().failed(reply.failure());
    return reply.failure();
  }
  auto answer = read_acquire(reply.value());
  // A grant and a place in the queue are writes. That another owner has the lock can be read.
  const bool wrote = answer.ok() && (answer.value().granted || answer.value().rank);
  if (wrote) server->line(Line::acquires).proven();
  server->outage().answered(wrote);
  return answer;
}

// WAIT has to come over the connection of the write it is about, and blocks that connection: which is why acquires with
// replicas_ack have one of their own.
void Acquirer::wait_for_replicas(Server& server, std::shared_ptr<Granted> granted) {
  const Options& options = servers_.options();
  const nanoseconds patience =
      std::min({options.response_timeout / 3, granted->lease / 3, nanoseconds(std::chrono::seconds(1))});
  const std::uint64_t wanted = servers_.replicas_wanted();
  (void)server.line(Line::acquires)
      .request({"WAIT", std::to_string(wanted), in_milliseconds(patience)}, granted->deadline,
               [this, granted, wanted](Result<Reply> reply, TimePoint) {
                 if (!reply.ok()) return take_back(granted, reply.failure());
                 auto count = read_number(reply.value());
                 if (!count.ok()) return take_back(granted, count.failure());
                 const auto got = count.value();
                 if (got >= wanted) return granted->done(granted->answer, granted->sent);
                 take_back(granted, {errc::unavailable, std::to_string(got) + " of " + std::to_string(wanted) +
                                                            " replicas acknowledged the lock in time"});
               });
}

// Before anything is reported, because the next attempt has the same value.
void Acquirer::take_back(std::shared_ptr<Granted> granted, Failure why) {
  request_release(servers_, Line::acquires, granted->kind, granted->lock_key, granted->value, true, granted->deadline,
                  [granted, why = std::move(why)](Server*, const Result<ReleaseAnswer>& answer) {
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
