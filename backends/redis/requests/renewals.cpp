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

Renewals::Renewals(CommandClient& commands, const WireFactory& wires, std::string client, Sentinels* sentinels)
    : commands_(commands), client_(std::move(client)), sentinels_(sentinels) {
  if (commands.options().replicas_ack > 0) {
    acknowledged_.emplace(commands.executor(), commands.options(), wires, nullptr);
  }
}

void Renewals::renew(const Grant& grant, Backend::RenewHandler done) {
  if (sentinels_ != nullptr) sentinels_->in_use(grant.owner, grant.lease);
  const nanoseconds patience = std::min(commands_.options().response_timeout, grant.lease / 4);
  const auto renewal =
      std::make_shared<Renewal>(Renewal{grant, saturating_add(commands_.executor().now(), patience), std::move(done)});
  if (!acknowledged_) return ask(commands_, renewal, false);
  next_.push_back(renewal);
  if (!under_way_) start_batch();
}

void Renewals::ask(CommandClient& commands, const std::shared_ptr<Renewal>& renewal, bool acknowledged) {
  const Grant& grant = renewal->grant;
  Command words = with_keys(lock_key(commands.options().prefix, grant.name, grant.space), {Key::lock, Key::fence});
  add_value(words, client_, grant.owner);
  words.add(in_milliseconds(grant.lease));
  (void)commands.run(
      renew_script(grant.space), std::move(words), renewal->deadline,
      [&commands, renewal, acknowledged](const Result<Reply>& reply, TimePoint sent) {
        const Result<bool> renewed = reply.ok() ? read_renew(reply.value()) : reply.failure();
        const auto answer = [&](RenewOutcome outcome) { std::exchange(renewal->done, nullptr)(std::move(outcome)); };
        if (!renewed.ok()) return answer({.status = Status::failed, .failure = renewed.failure()});
        if (!renewed.value()) {
          const std::string why = "Redis no longer has " + what(renewal->grant) + " as ours";
          return answer({.status = Status::lost, .failure = {errc::lost, why}});
        }
        commands.proven();
        renewal->sent = sent;
        renewal->renewed = true;
        if (acknowledged && !renewal->judged) return;  // what WAIT says is the answer
        if (acknowledged) {
          return answer({.status = Status::failed, .failure = {errc::ambiguous, "no word from the replicas in time"}});
        }
        answer({.status = Status::renewed, .valid_until = lease_valid_until(sent, renewal->grant.lease)});
      });
}

void Renewals::start_batch() {
  under_way_ = true;
  const Batch batch = std::exchange(next_, {});
  TimePoint deadline = TimePoint::max();
  for (const auto& renewal : batch) {
    deadline = std::min(deadline, renewal->deadline);
    ask(*acknowledged_, renewal, true);
  }
  // The server counts from when it gets there; the answer has to come back in time.
  const nanoseconds patience = (deadline - commands_.executor().now()) / 2;
  const std::uint64_t wanted = replicas_wanted(commands_.options(), sentinels_);
  (void)acknowledged_->request(
      {"WAIT", std::to_string(wanted), in_milliseconds(patience)}, deadline,
      [this, batch, wanted](const Result<Reply>& reply, TimePoint) { acknowledged(batch, wanted, reply); });
}

void Renewals::acknowledged(const Batch& batch, std::uint64_t wanted, const Result<Reply>& reply) {
  under_way_ = false;
  if (!next_.empty()) start_batch();
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
