#include "backends/redis/requests/renewal.hpp"

#include <algorithm>
#include <utility>

#include "backends/redis/requests/answers.hpp"
#include "backends/redis/requests/keys.hpp"
#include "backends/redis/requests/scripts.hpp"

namespace dlock::redis {

namespace {

using Status = RenewOutcome::Status;

std::string named(const Grant& grant) {
  return std::string(to_string(grant.kind)) + " \"" + grant.name + '"';
}

}  // namespace

void renew(Topology& topology, const std::string& client, const Grant& grant, Backend::RenewHandler done) {
  topology.in_use(grant.owner, grant.lease);
  const TimePoint deadline =
      saturating_add(topology.executor().now(), std::min(topology.options().response_timeout, grant.lease / 4));
  const std::string key = lock_key(topology.options(), grant.name, grant.kind);
  Command words = with_keys(key, {Key::lock, Key::fence});
  add_value(words, client, grant.owner);
  words.add(in_milliseconds(grant.lease));
  (void)topology.send(
      key, {.script = &renew_script(grant.kind), .words = std::move(words), .line = Line::acknowledged}, deadline,
      [&topology, grant, deadline, done = std::move(done)](Node* node, const Result<Reply>& reply, TimePoint sent) {
        const Result<bool> renewed = reply.ok() ? read_renew(reply.value()) : reply.failure();
        if (!renewed.ok()) return done({.status = Status::failed, .failure = renewed.failure()});
        if (!renewed.value()) {
          return done({.status = Status::lost, .failure = {errc::lost, named(grant) + " is no longer ours"}});
        }
        node->line(Line::acknowledged).proven();
        const TimePoint valid_until = lease_valid_until(sent, grant.lease);
        if (topology.options().replicas_ack == 0) {
          return done({.status = Status::renewed, .valid_until = valid_until});
        }
        const std::uint64_t wanted = topology.replicas_wanted();
        node->replica_acks().count(
            wanted, (deadline - topology.executor().now()) / 2, deadline,
            [grant, done, wanted, valid_until](const Result<std::uint64_t>& replicas) {
              if (!replicas.ok()) return done({.status = Status::failed, .failure = replicas.failure()});
              if (replicas.value() >= wanted) return done({.status = Status::renewed, .valid_until = valid_until});
              done({.status = Status::failed,
                    .failure = too_few_replicas(replicas.value(), wanted, "the renewal of " + named(grant))});
            });
      });
}

}  // namespace dlock::redis
