#include "backends/redis/requests/renewals.hpp"

#include <algorithm>
#include <utility>

#include "backends/redis/requests/acquirer.hpp"
#include "backends/redis/requests/answers.hpp"
#include "backends/redis/requests/keys.hpp"
#include "backends/redis/requests/scripts.hpp"

namespace dlock::redis {

using std::chrono::nanoseconds;
using Status = RenewOutcome::Status;

namespace {

std::string what(const Grant& grant) {
  return std::string(to_string(grant.space)) + " \"" + grant.name + '"';
}

}  // namespace

Command Renewals::words_of(const std::string& key, const Grant& grant) const {
  Command words = with_keys(key, {Key::lock, Key::fence});
  add_value(words, client_, grant.owner);
  words.add(in_milliseconds(grant.lease));
  return words;
}

void Renewals::renew(const Grant& grant, Backend::RenewHandler done) {
  servers_.in_use(grant.owner, grant.lease);
  const Options& options = servers_.options();
  const nanoseconds patience = std::min(options.response_timeout, grant.lease / 4);
  const auto renewal =
      std::make_shared<Renewal>(Renewal{grant, saturating_add(servers_.executor().now(), patience), std::move(done)});
  const std::string key = lock_key(options, grant.name, grant.space);
  if (options.replicas_ack == 0) {
    (void)servers_.run(Line::renewals, key, renew_script(grant.space), words_of(key, grant), renewal->deadline,
                       [renewal](Server& server, const Result<Reply>& reply, TimePoint sent) {
                         answered(server, *renewal, false, reply, sent);
                       });
    return;
  }
  Server& server = servers_.of(key);
  Batches& batches = acknowledged_[&server];
  batches.next.push_back(renewal);
  if (!batches.under_way) start_batch(server, batches);
}

void Renewals::answered(Server& server, Renewal& renewal, bool acknowledged, const Result<Reply>& reply,
                        TimePoint sent) {
  const Result<bool> renewed = reply.ok() ? read_renew(reply.value()) : reply.failure();
  const auto answer = [&](RenewOutcome outcome) { std::exchange(renewal.done, nullptr)(std::move(outcome)); };
  if (!renewed.ok()) return answer({.status = Status::failed, .failure = renewed.failure()});
  if (!renewed.value()) {
    const std::string why = "Redis no longer has " + what(renewal.grant) + " as ours";
    return answer({.status = Status::lost, .failure = {errc::lost, why}});
  }
  server.commands().proven();
  renewal.sent = sent;
  renewal.renewed = true;
  if (acknowledged && !renewal.judged) return;  // what WAIT says is the answer
  if (acknowledged) {
    return answer({.status = Status::failed, .failure = {errc::ambiguous, "no word from the replicas in time"}});
  }
  answer({.status = Status::renewed, .valid_until = lease_valid_until(sent, renewal.grant.lease)});
}

// WAIT is about what came over its own connection, so nothing of a batch is sent to another node of a cluster: the next
// batch finds the right one.
void Renewals::start_batch(Server& server, Batches& batches) {
  batches.under_way = true;
  const Batch batch = std::exchange(batches.next, {});
  CommandClient& commands = server.line(Line::renewals);
  TimePoint deadline = TimePoint::max();
  for (const auto& renewal : batch) {
    const Grant& grant = renewal->grant;
    deadline = std::min(deadline, renewal->deadline);
    (void)commands.run(renew_script(grant.space),
                       words_of(lock_key(servers_.options(), grant.name, grant.space), grant), renewal->deadline,
                       [this, &server, renewal](const Result<Reply>& reply, TimePoint sent) {
                         if (!reply.ok() || !reply.value().is(Reply::Type::error)) {
                           return answered(server, *renewal, true, reply, sent);
                         }
                         servers_.heard(server, reply.value());
                         answered(server, *renewal, true, Failure{errc::unavailable, reply.value().text}, sent);
                       });
  }
  // The server counts from when it gets there; the answer has to come back in time.
  const nanoseconds patience = (deadline - servers_.executor().now()) / 2;
  const std::uint64_t wanted = servers_.replicas_wanted();
  (void)commands.request({"WAIT", std::to_string(wanted), in_milliseconds(patience)}, deadline,
                         [this, &server, batch, wanted](const Result<Reply>& reply, TimePoint) {
                           acknowledged(server, batch, wanted, reply);
                         });
}

void Renewals::acknowledged(Server& server, const Batch& batch, std::uint64_t wanted, const Result<Reply>& reply) {
  Batches& batches = acknowledged_[&server];
  batches.under_way = false;
  if (!batches.next.empty()) start_batch(server, batches);
  const Result<std::uint64_t> count = reply.ok() ? read_number(reply.value()) : reply.failure();
  for (const auto& renewal : batch) {
    renewal->judged = true;
    if (!renewal->renewed) continue;  // answered already, or still to be
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
