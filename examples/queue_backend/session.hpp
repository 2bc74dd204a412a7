// The client's session with queue_server.py: its connection, its requests, how long it is safe, and what it holds.
#pragma once

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <set>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include <dlock/spi/backend.hpp>
#include <dlock/spi/backoff.hpp>
#include <dlock/spi/waiter.hpp>

#include "line_connection.hpp"

namespace example {

using Words = std::vector<std::string>;  // of an answer; never fewer than four

// 0 if it is none.
inline dlock::FencingToken token_of(const std::string& word) {
  std::uint64_t value = 0;
  std::from_chars(word.data(), word.data() + word.size(), value);
  return dlock::FencingToken(value);
}

// The connection is the session: when it ends, the server frees what belongs to it. So no request of an earlier session
// can do harm, and this client never needs to find out whether one was carried out.
class Session final : public dlock::SessionWaiters, public LineConnection::Events {
 public:
  using Answer = std::function<void(const dlock::Result<Words>&)>;
  using Turn = std::function<void(dlock::FencingToken)>;

  Session(dlock::BackendHost& host, dlock::BackendConfig config, const sockaddr_in& server)
      : SessionWaiters(host.executor(), config.response_timeout),
        host_(host),
        executor_(host.executor()),
        config_(std::move(config)),
        server_(server) {}

  // Sends a request as soon as there is a session. Answers within the response timeout.
  void ask(const std::string& line, Answer done) {
    Request& request = requests_.emplace_back(executor_, std::move(done));
    request.timeout.arm(after(config_.response_timeout), [&request] { request.fail("the server did not answer"); });
    if (usable_) return connection_->send(line);
    request.unsent = line;
    want_session();
  }
  // This owner holds the lock from now on.
  void hold(const dlock::OwnerId& owner) { holds_.insert(owner); }
  // False: it was lost.
  [[nodiscard]] bool let_go(const dlock::OwnerId& owner) { return holds_.erase(owner) > 0; }
  // turn: called when the server grants this owner the lock for which it waits; empty: no longer.
  void on_turn(const dlock::OwnerId& owner, Turn turn) {
    turns_.erase(owner);
    if (turn) turns_.emplace(owner, std::move(turn));
  }
  [[nodiscard]] bool session_usable() const override { return usable_; }

 private:
  struct Request {
    Request(dlock::Executor& executor, Answer answer) : done(std::move(answer)), timeout(executor) {}
    void fail(const std::string& why) {
      if (!done) return;
      std::exchange(done,
                    nullptr)(dlock::Failure{unsent.empty() ? dlock::errc::ambiguous : dlock::errc::unavailable, why});
    }
    Answer done;  // empty: too late
    std::string unsent;
    dlock::Timer timeout;
  };

  // --- What the waiters need ---
  void want_session() override {
    if (!connection_ && !retry_.armed()) connect();
  }
  [[nodiscard]] dlock::Failure session_problem() const override { return problem_; }
  [[nodiscard]] std::chrono::nanoseconds session_lease() const override { return config_.lease; }
  [[nodiscard]] dlock::TimePoint session_valid_until() const override { return valid_until_; }

  [[nodiscard]] dlock::TimePoint after(std::chrono::nanoseconds time) const {
    return dlock::saturating_add(executor_.now(), time);
  }

  // --- The beginning of a session, and its end ---
  void connect() {
    try {
      connection_ = std::make_unique<LineConnection>(executor_, server_, *this);
    } catch (const dlock::Error& e) {
      return retry_.arm(executor_.now(), [this, why = dlock::Failure{e.code(), e.detail()}] { ended(why); });
    }
    hello_sent_ = executor_.now();
    connection_->send("HELLO\t" + std::to_string(config_.lease / std::chrono::milliseconds(1)) + "\t" + config_.holder);
    expiry_.arm(after(config_.connect_timeout), [this] {
      ended({dlock::errc::unavailable, "no connection within the connect timeout"});
    });
  }
  void welcomed() {
    usable_ = true;
    backoff_.reset();
    extend(hello_sent_);
    host_.connection({.state = dlock::ConnectionEvent::State::connected, .reason = {}});
    requests_.remove_if([](const Request& each) { return !each.unsent.empty() && !each.done; });
    for (Request& each : requests_) {
      if (!each.unsent.empty()) connection_->send(std::exchange(each.unsent, {}));
    }
    keep_alive();
    session_ready();
  }
  void ended(dlock::Failure why) override {
    connection_.reset();
    expiry_.disarm();
    keep_alive_.disarm();
    problem_ = why;
    retry_.arm(after(backoff_.next(executor_)), [this] {
      if (!empty() || !requests_.empty()) connect();
    });
    std::list<Request> unanswered;
    unanswered.swap(requests_);
    if (!std::exchange(usable_, false)) {
      session_suspended(why);  // there was none yet
    } else {
      host_.connection({.state = dlock::ConnectionEvent::State::reconnecting, .reason = why});
      for (const dlock::OwnerId& owner : std::exchange(holds_, {})) host_.lost(owner, {dlock::errc::lost, why.detail});
      session_lost(why);
    }
    for (Request& each : unanswered) each.fail(why.detail);
  }

  // --- While it lasts ---
  void keep_alive() {
    keep_alive_.arm(after(config_.lease / 4), [this] { keep_alive(); });
    ask("PING", [this, sent = executor_.now()](const dlock::Result<Words>& pong) {
      if (!usable_) return;
      if (!pong.ok()) {
        suspended_ = true;
        return session_suspended(pong.failure());
      }
      extend(sent);
      if (std::exchange(suspended_, false)) session_ready();
    });
  }
  // The server keeps the session for this long after the request arrived, so count from before it was sent.
  void extend(dlock::TimePoint sent) {
    valid_until_ = dlock::lease_valid_until(sent, config_.lease);
    expiry_.arm(dlock::saturating_add(valid_until_, -dlock::longest_loss_lead), [this] { expired(); });
    for (const dlock::OwnerId& owner : std::set(holds_)) host_.extended(owner, valid_until_);  // which may release some
  }
  void expired() { ended({dlock::errc::unavailable, "the server did not answer before the session expired"}); }

  void received(const std::string& line) override {
    Words words;
    std::istringstream input(line);
    for (std::string word; std::getline(input, word, '\t');) words.push_back(word);
    words.resize(std::max<std::size_t>(words.size(), 4));
    if (!usable_ && words[0] == "WELCOME") return welcomed();
    // This process was stopped: its holders may already know that the session is over.
    if (usable_ && dlock::may_be_over(valid_until_, executor_.now())) return expired();
    if (words[0] == "TURN" || words[0] == "BROKEN") return notified(words);
    if (!usable_ || requests_.empty()) return ended({dlock::errc::protocol, "unexpected line: " + line});
    const Answer done = std::move(requests_.front().done);
    requests_.pop_front();
    if (done) done(words);
  }
  void notified(const Words& words) {
    const dlock::OwnerId owner = dlock::OwnerId::parse(words[1]).value_or(dlock::OwnerId());
    if (words[0] == "BROKEN") {
      if (let_go(owner)) host_.lost(owner, {dlock::errc::lost, "the lock was broken"});
    } else if (const auto turn = turns_.find(owner); turn != turns_.end()) {
      turn->second(token_of(words[2]));
    }
  }

  dlock::BackendHost& host_;
  dlock::Executor& executor_;
  const dlock::BackendConfig config_;
  const sockaddr_in server_;
  std::unique_ptr<LineConnection> connection_;
  bool usable_ = false;     // the server has welcomed us
  bool suspended_ = false;  // it did not answer the last PING
  dlock::Failure problem_{dlock::errc::unavailable, "there is no connection yet"};
  dlock::TimePoint hello_sent_;
  dlock::TimePoint valid_until_;
  std::list<Request> requests_;  // answered in this order
  std::set<dlock::OwnerId> holds_;
  std::map<dlock::OwnerId, Turn> turns_;
  dlock::Backoff backoff_{std::chrono::seconds(1)};
  dlock::Timer retry_{executor_};
  dlock::Timer expiry_{executor_};
  dlock::Timer keep_alive_{executor_};
};

}  // namespace example
