#include "backends/redis/waiting/hearing.hpp"

#include <optional>
#include <utility>

#include "backends/redis/requests/answers.hpp"

namespace dlock::redis {

namespace {

// Then we are not heard for as long as the connections stand, and poll. Connections that are made again because of a
// failed check do not begin a new count.
constexpr int most_failed_checks = 5;

}  // namespace

Hearing::Hearing(Servers& servers, Subscriptions& subscriptions, std::string channel, std::function<void()> now_heard)
    : servers_(servers),
      subscriptions_(subscriptions),
      channel_(std::move(channel)),
      now_heard_(std::move(now_heard)),
      check_timer_(servers.executor()) {}

void Hearing::subscribed() {
  unsubscribed();
  if (!std::exchange(reconnecting_, false)) {
    failed_checks_ = 0;
    check_backoff_.reset();
  }
  check();
}

void Hearing::unsubscribed() {
  ++subscription_;
  heard_ = checking_ = false;
  check_timer_.disarm();
}

void Hearing::check() {
  if (checking_ || !subscriptions_.hears(channel_)) return;
  checking_ = true;
  // An empty message has no meaning; the server answers how many receive it.
  (void)servers_.request(
      Line::acquires, channel_, {servers_.are_a_cluster() ? "SPUBLISH" : "PUBLISH", channel_, ""}, servers_.answer_by(),
      [this, life = lifetime_.watch(), about = subscription_](Server* server, const Result<Reply>& reply, TimePoint) {
        if (!life.over() && about == subscription_) checked(server, reply);
      });
}

void Hearing::checked(const Server* server, const Result<Reply>& reply) {
  checking_ = false;
  const Result<std::uint64_t> count = reply.ok() ? read_number(reply.value()) : reply.failure();
  if (count.ok() && count.value() > 0) {
    failed_checks_ = 0;
    check_backoff_.reset();
    if (std::exchange(heard_, true)) return;
    const auto tell = now_heard_;  // which may be the end of us
    return tell();
  }
  heard_ = false;
  // Without the right to publish, that is unknown.
  if (!count.ok() && count.failure().code == errc::access_denied) return;
  if (++failed_checks_ > most_failed_checks) return;
  // Where another server's subscribers were counted.
  std::optional<common::Host> elsewhere;
  if (count.ok()) elsewhere = server->options().host;
  check_timer_.arm(
      saturating_add(servers_.executor().now(), check_backoff_.next(servers_.executor())), [this, elsewhere] {
        // A cluster's map says where to listen; the name of one server leads newer connections where it
        // leads those of others.
        Server* const asked = elsewhere ? servers_.master_at(*elsewhere) : nullptr;
        if (asked != nullptr) {
          reconnecting_ = !servers_.are_a_cluster();
          const std::string name = asked->options().endpoint();
          servers_.mistook(*asked, {errc::unavailable, name + ": not the server that the subscriber is connected to"});
        }
        if (!elsewhere || servers_.are_a_cluster()) check();
      });
}

}  // namespace dlock::redis
