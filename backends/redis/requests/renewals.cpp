#include "backends/redis/requests/renewals.hpp"

#include <algorithm>
#include <set>
#include <utility>

#include "backends/redis/requests/acquirer.hpp"
#include "backends/redis/requests/answers.hpp"
#include "backends/redis/requests/keys.hpp"
#include "backends/redis/requests/scripts.hpp"

namespace dlock::redis {

using std::chrono::nanoseconds;
using Status = RenewOutcome::Status;

namespace {

Command words_of(const std::string& key, const std::string& client, const Grant& grant) {
  Command words = with_keys(key, {Key::lock, Key::fence});
  add_value(words, client, grant.owner);
  words.add(in_milliseconds(grant.lease));
  return words;
}

std::string what(const Grant& grant) {
  return std::string(to_string(grant.kind)) + " \"" + grant.name + '"';
}

}  // namespace

void Renewals::fail(Renewal& renewal, Failure why) {
  std::exchange(renewal.done, nullptr)({.status = Status::failed, .failure = std::move(why)});
}

std::string Renewals::key_of(const Grant& grant) const {
  return lock_key(servers_.options(), grant.name, grant.kind);
}

void Renewals::renew(const Grant& grant, Backend::RenewHandler done) {
  servers_.in_use(grant.owner, grant.lease);
  const Options& options = servers_.options();
  const nanoseconds patience = std::min(options.response_timeout, grant.lease / 4);
  const auto renewal =
      std::make_shared<Renewal>(Renewal{grant, saturating_add(servers_.executor().now(), patience), std::move(done)});
  const std::string key = key_of(grant);
  if (options.replicas_ack > 0) {
    Server& server = servers_.of(key);
    enqueue(server, renewal);
    return start_if_idle(server);
  }
  (void)servers_.run(Line::renewals, key, renew_script(grant.kind), words_of(key, client_, grant), renewal->deadline,
                     [renewal](Server* server, const Result<Reply>& reply, TimePoint sent) {
                       if (!reply.ok()) return fail(*renewal, reply.failure());
                       answered(*server, *renewal, reply, sent);
                     });
}

void Renewals::answered(Server& server, Renewal& renewal, const Result<Reply>& reply, TimePoint sent) {
  const Result<bool> renewed = reply.ok() ? read_renew(reply.value()) : reply.failure();
  if (!renewed.ok()) return fail(renewal, renewed.failure());
  const auto answer = [&](RenewOutcome outcome) { std::exchange(renewal.done, nullptr)(std::move(outcome)); };
  if (!renewed.value()) {
    const std::string why = what(renewal.grant) + " is no longer ours";
    return answer({.status = Status::lost, .failure = {errc::lost, why}});
  }
  server.line(Line::renewals).proven();
  renewal.sent = sent;
  renewal.renewed = true;
  const bool acknowledged = renewal.at != nullptr;
  if (acknowledged && !renewal.judged) return;  // what WAIT says is the answer
  if (acknowledged) return fail(renewal, {errc::ambiguous, "the replicas did not answer in time"});
  answer({.status = Status::renewed, .valid_until = lease_valid_until(sent, renewal.grant.lease)});
}

// --- Where replicas acknowledge --------------------------------------------------------------------------------------

void Renewals::enqueue(Server& server, const std::shared_ptr<Renewal>& renewal) {
  renewal->at = &server;
  acknowledged_[&server].next.push_back(renewal);
}

// WAIT is about what came over its own connection. What belongs to another node of a cluster goes into that one's
// batch.
void Renewals::start_if_idle(Server& server) {
  Batches& batches = acknowledged_[&server];
  if (batches.under_way || batches.next.empty()) return;
  batches.under_way = true;
  const Batch batch = std::exchange(batches.next, {});
  CommandClient& commands = server.line(Line::renewals);
  TimePoint deadline = TimePoint::max();
  for (const auto& renewal : batch) {
    deadline = std::min(deadline, renewal->deadline);
    if (renewal->asking) {
      (void)commands.request({"ASKING"}, renewal->deadline, [](const Result<Reply>&, TimePoint) {});
    }
    const Grant& grant = renewal->grant;
    (void)commands.run(
        renew_script(grant.kind), words_of(key_of(grant), client_, grant), renewal->deadline,
        [this, &server, renewal](const Result<Reply>& reply, TimePoint sent) { replied(server, renewal, reply, sent); },
        AtTheEnd::dropped, renewal->asking);
  }
  // The server counts from when it gets there; the answer has to come back in time.
  const nanoseconds patience = (deadline - servers_.executor().now()) / 2;
  const std::uint64_t wanted = servers_.replicas_wanted();
  (void)commands.request({"WAIT", std::to_string(wanted), in_milliseconds(patience)}, deadline,
                         [this, &server, batch, wanted](const Result<Reply>& reply, TimePoint) {
                           acknowledged(server, batch, wanted, reply);
                         });
}

void Renewals::replied(Server& server, const std::shared_ptr<Renewal>& renewal, const Result<Reply>& reply,
                       TimePoint sent) {
  const Cluster::Elsewhere to = servers_.redirected(server, key_of(renewal->grant), reply);
  if (to.server != nullptr && ++renewal->redirections <= Cluster::most_redirections) {
    renewal->asking = to.asks;
    renewal->judged = false;
    enqueue(*to.server, renewal);
    return start_if_idle(*to.server);
  }
  if (reply.ok() && reply.value().is(Reply::Type::error)) {
    return fail(*renewal, {errc::unavailable, server.options().endpoint() + ": " + reply.value().text});
  }
  answered(server, *renewal, reply, sent);
}

void Renewals::acknowledged(Server& server, const Batch& batch, std::uint64_t wanted, const Result<Reply>& reply) {
  Batches& batches = acknowledged_[&server];
  batches.under_way = false;
  // It may not be the one to ask any more.
  std::set<Server*> next;
  for (const auto& renewal : std::exchange(batches.next, {})) {
    renewal->asking = renewal->asking && reply.ok();
    Server& at = renewal->asking ? server : servers_.of(key_of(renewal->grant));
    enqueue(at, renewal);
    next.insert(&at);
  }
  for (Server* const each : next) start_if_idle(*each);
  const Result<std::uint64_t> count = reply.ok() ? read_number(reply.value()) : reply.failure();
  for (const auto& renewal : batch) {
    if (renewal->at != &server) continue;
    renewal->judged = true;
    if (!renewal->renewed || !renewal->done) continue;  // answered already, or still to be
    const auto done = std::exchange(renewal->done, nullptr);
    if (!count.ok()) {
      done({.status = Status::failed, .failure = count.failure()});
    } else if (count.value() < wanted) {
      const std::string why = std::to_string(count.value()) + " of " + std::to_string(wanted) +
                              " replicas acknowledged the renewal of " + what(renewal->grant) + " in time";
      done({.status = Status::failed, .failure = {errc::unavailable, why}});
    } else {
      done({.status = Status::renewed, .valid_until = lease_valid_until(renewal->sent, renewal->grant.lease)});
    }
  }
}

}  // namespace dlock::redis
