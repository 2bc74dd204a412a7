// One acquire in the queue of queue_server.py.
#pragma once

#include <chrono>
#include <utility>

#include <dlock/spi/backoff.hpp>
#include <dlock/spi/waiter.hpp>

#include "session.hpp"

namespace example {

class QueueContention final : public dlock::SessionWaiter {
 public:
  QueueContention(Session& session, const dlock::LockRequest& request, dlock::GrantSink& sink)
      : SessionWaiter(session, request, sink), session_(session) {
    session_.on_turn(request.owner, [this](dlock::FencingToken token) {
      // While a request is in flight, its answer comes first.
      stage() == Stage::waiting ? grant(token) : wake();
    });
  }
  ~QueueContention() override {
    cancel();
    session_.on_turn(request().owner, nullptr);
  }

 private:
  // Also a retry: the same owner keeps its place, or is granted the lock that it has.
  void resume() override {
    start_request();
    in_queue_ = true;
    session_.ask("LOCK\t" + request().name + "\t" + request().owner.to_string() + (request().wait ? "\twait" : "\ttry"),
                 on_answer([this](const dlock::Result<Words>& answer) {
                   if (!answer.ok()) return failed(answer.failure());
                   if (answer.value()[0] == "GRANTED") return grant(token_of(answer.value()[1]));
                   if (answer.value()[0] == "QUEUED") {
                     return wait(dlock::random_between(std::chrono::seconds(20), std::chrono::seconds(40), executor()));
                   }
                   in_queue_ = false;
                   busy();
                 }));
  }
  void grant(dlock::FencingToken token) {
    auto grant = grant_of(token);
    if (!grant) return;  // the session is about to end, or has ended
    session_.hold(request().owner);
    granted(*std::move(grant));
  }
  // Behind the LOCK on the same connection, so it arrives after it, or neither does.
  void give_up() override {
    if (!in_queue_ || !session_.session_usable()) return;
    session_.ask("UNLOCK\t" + request().name + "\t" + request().owner.to_string(), [](const auto&) {});
  }
  void place_lost() override { in_queue_ = false; }

  Session& session_;
  bool in_queue_ = false;  // perhaps
};

}  // namespace example
