#include "backends/redis/releases.hpp"

#include <algorithm>
#include <utility>

#include "backends/redis/acquirer.hpp"
#include "backends/redis/keys.hpp"
#include "backends/redis/times.hpp"

namespace dlock::redis {

namespace {

// Each takes a connection that breaks right after the request was sent.
constexpr int max_attempts = 8;
// Packets of a broken connection may arrive after those of the next one, but not much later.
constexpr std::chrono::nanoseconds straggler_time = std::chrono::seconds(1);

}  // namespace

Releases::Releases(CommandClient& commands, CommandClient& acquiring, std::string client,
                   std::function<void()> publish_forbidden)
    : commands_(commands),
      acquiring_(acquiring),
      client_(std::move(client)),
      publish_forbidden_(std::move(publish_forbidden)) {}

void Releases::send(CommandClient& commands, const std::string& name, const OwnerId& owner, bool leave,
                    TimePoint deadline, std::function<void(Result<ReleaseAnswer>)> done) {
  Keys keys = keys_of(commands.options().prefix, name);
  (void)commands.run(release_script(), {std::move(keys.lock), std::move(keys.queue), std::move(keys.alive)},
                     {value_of(client_, owner), in_milliseconds(grant_for), leave ? "leave" : "stay"}, deadline,
                     [this, done = std::move(done)](Result<Reply> reply, TimePoint) {
                       if (!reply.ok()) return done(reply.failure());
                       auto answer = read_release(reply.value());
                       if (answer.ok() && !answer.value().may_publish) publish_forbidden_();
                       done(std::move(answer));
                     });
}

// --- Locks that are held ---------------------------------------------------------------------------------------------

struct Releases::Attempt {
  Grant grant;
  Backend::ReleaseHandler done;
  TimePoint deadline;
  int count = 0;
  bool ambiguous = false;  // an earlier one may have been carried out
};

void Releases::release(const Grant& grant, Backend::ReleaseHandler done) {
  const TimePoint deadline = saturating_add(commands_.executor().now(), commands_.options().response_timeout);
  attempt(std::make_shared<Attempt>(Attempt{grant, std::move(done), deadline}));
}

void Releases::attempt(std::shared_ptr<Attempt> attempt) {
  ++attempt->count;
  const Grant& grant = attempt->grant;
  send(commands_, grant.name, grant.owner, false, attempt->deadline, [this, attempt](Result<ReleaseAnswer> answer) {
    using Status = ReleaseOutcome::Status;
    const TimePoint now = commands_.executor().now();
    if (answer.ok()) {
      const bool ours = answer.value().was == ReleaseAnswer::Was::ours;
      // Nobody could have the lock before the lease was over, unless an earlier attempt freed it.
      const bool freed_before = attempt->ambiguous && now < attempt->grant.valid_until;
      return attempt->done({.status = ours || freed_before ? Status::released : Status::not_owner});
    }
    const Failure& why = answer.failure();
    if (why.code == errc::ambiguous) {
      attempt->ambiguous = true;
      if (now < attempt->deadline && attempt->count < max_attempts) return this->attempt(attempt);
    }
    abandon(attempt->grant.name, attempt->grant.owner, attempt->grant.lease, attempt->ambiguous);
    attempt->done({.status = Status::failed, .failure = why});
  });
}

// --- Owners that gave up ---------------------------------------------------------------------------------------------

void Releases::abandon(const std::string& name, const OwnerId& owner, std::chrono::nanoseconds lease, bool stragglers) {
  const auto [entry, fresh] = entries_.try_emplace(owner, commands_.executor());
  if (!fresh) return;
  entry->second.name = name;
  entry->second.stragglers = stragglers;
  entry->second.moot = saturating_add(commands_.executor().now(), lease + alive_for);
  ++unconfirmed_;
  clean(owner);
}

void Releases::heard_of(const OwnerId& owner) {
  const auto found = entries_.find(owner);
  if (found != entries_.end() && found->second.confirmed) clean(owner);
}

void Releases::clean(const OwnerId& owner) {
  const TimePoint deadline = saturating_add(commands_.executor().now(), commands_.options().response_timeout);
  send(acquiring_, entries_.at(owner).name, owner, true, deadline,
       [this, owner](const Result<ReleaseAnswer>& answer) { cleaned(owner, answer); });
}

void Releases::cleaned(const OwnerId& owner, const Result<ReleaseAnswer>& answer) {
  const auto found = entries_.find(owner);
  if (found == entries_.end()) return;
  Entry& entry = found->second;
  const TimePoint now = commands_.executor().now();
  if (answer.ok()) {
    if (!std::exchange(entry.confirmed, true)) --unconfirmed_;
    if (!std::exchange(entry.stragglers, false)) {
      forget(owner);
    } else {
      entry.timer.arm(saturating_add(now, straggler_time), [this, owner] { clean(owner); });
    }
    return report_if_finished();
  }
  if (answer.failure().code != errc::unavailable) entry.stragglers = true;
  if (now >= entry.moot) {
    forget(owner);
    return report_if_finished();
  }
  const TimePoint again = saturating_add(now, entry.backoff.next(commands_.executor()));
  entry.timer.arm(std::min(again, entry.moot), [this, owner] { clean(owner); });
}

void Releases::forget(const OwnerId& owner) {
  const auto found = entries_.find(owner);
  if (!found->second.confirmed) --unconfirmed_;
  entries_.erase(found);
}

void Releases::finish(std::function<void()> done) {
  finished_ = std::move(done);
  report_if_finished();
}

void Releases::report_if_finished() {
  if (!finished_ || unconfirmed_ > 0) return;
  const auto finished = std::exchange(finished_, nullptr);
  finished();
}

}  // namespace dlock::redis
