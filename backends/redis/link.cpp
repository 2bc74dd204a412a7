#include "backends/redis/link.hpp"

#include <hiredis/hiredis.h>

#include <algorithm>
#include <new>
#include <utility>

#include "backends/redis/times.hpp"

namespace dlock::redis {

using std::chrono::milliseconds;
using std::chrono::nanoseconds;

namespace {

constexpr nanoseconds longest_silence = std::chrono::seconds(2);
constexpr nanoseconds shortest_silence = milliseconds(50);
// Whoever needs the connection does not wait for the end of a long pause, but neither does each of them dial.
constexpr nanoseconds between_attempts = milliseconds(50);

struct FreeCommand {
  void operator()(char* command) const noexcept { redisFreeCommand(command); }
};

}  // namespace

void append_command(std::string& out, const std::vector<std::string_view>& words) {
  std::vector<const char*> data(words.size());
  std::vector<std::size_t> sizes(words.size());
  for (std::size_t i = 0; i < words.size(); ++i) {
    data[i] = words[i].data();
    sizes[i] = words[i].size();
  }
  char* raw = nullptr;
  const int size = redisFormatCommandArgv(&raw, static_cast<int>(words.size()), data.data(), sizes.data());
  const std::unique_ptr<char, FreeCommand> command(raw);
  if (size < 0) throw std::bad_alloc();
  out.append(command.get(), static_cast<std::size_t>(size));
}

Link::Link(Executor& executor, const Options& options, WireFactory wires, User& user)
    : executor_(executor),
      options_(options),
      wires_(std::move(wires)),
      user_(user),
      timer_(executor),
      silence_(std::max(std::min(longest_silence, options.response_timeout), shortest_silence)),
      health_timer_(executor) {}

Link::~Link() = default;

void Link::want() {
  if (state_ == State::idle) {
    connect();
  } else if (state_ == State::pausing) {
    const TimePoint soon = std::max(executor_.now(), saturating_add(last_attempt_, between_attempts));
    if (soon < next_attempt_) pause_until(soon);
  }
}

void Link::connect() {
  state_ = State::connecting;
  last_attempt_ = executor_.now();
  const TimePoint deadline = saturating_add(last_attempt_, options_.connect_timeout);
  written_ = sent_ = 0;
  timer_.arm(deadline, [this] {
    down({errc::unavailable, options_.endpoint() + ": no connection within the connect timeout"});
  });
  wire_ = wires_(executor_, options_, *this);
  wire_->open(deadline);
}

void Link::pause_until(TimePoint at) {
  state_ = State::pausing;
  next_attempt_ = at;
  timer_.arm(at, [this] { connect(); });
}

void Link::pause_until_wanted() {
  timer_.disarm();
  state_ = State::pausing;
  next_attempt_ = TimePoint::max();
}

void Link::opened() {
  state_ = State::greeting;
  handshake_.emplace(options_);
  for (const auto& command : handshake_->commands()) {
    std::string bytes;
    append_command(bytes, {command.begin(), command.end()});
    write(bytes);
  }
  wire_->flush();
}

void Link::write(std::string_view bytes) {
  wire_->write(bytes);
  written_ += bytes.size();
}

void Link::received(Reply reply) {
  if (state_ == State::ready) return user_.link_received(std::move(reply));
  const auto verdict = handshake_->replied(reply);
  if (!verdict) return;
  if (verdict->code) return down({verdict->code, options_.endpoint() + ": " + verdict->detail});
  state_ = State::ready;
  ready_since_ = executor_.now();
  proven_ = false;
  timer_.disarm();
  problem_ = {};
  watch_health();
  user_.link_ready();
}

void Link::drained() {
  last_heard_ = executor_.now();
  asked_.reset();
  if (state_ == State::ready) user_.link_drained();
}

bool Link::good() const {
  return state_ == State::ready && (proven_ || executor_.now() >= saturating_add(ready_since_, proof_time));
}

void Link::closed(Failure why) {
  down(std::move(why));
}

void Link::break_off(Failure why) {
  if (wire_) {
    wire_->discard();
    down(std::move(why));
  }
}

void Link::down(Failure why) {
  const bool was_ready = state_ == State::ready;
  sent_ = wire_->sent();
  const auto gone = std::move(wire_);  // may be what called us
  handshake_.reset();
  health_timer_.disarm();
  problem_ = why;
  const bool hopeless = why.code != errc::unavailable && why.code != errc::ambiguous;
  if (good()) {
    backoff_.reset();
    pause_until(saturating_add(executor_.now(), random_between(nanoseconds(0), milliseconds(10), executor_)));
  } else if (hopeless && !was_ready) {
    pause_until_wanted();
  } else {
    pause_until(saturating_add(executor_.now(), backoff_.next(executor_)));
  }
  user_.link_down(why, was_ready);
}

void Link::rest() {
  if (state_ == State::idle || state_ == State::stopped) return;
  if (good()) backoff_.reset();
  if (wire_) sent_ = wire_->sent();
  wire_.reset();
  handshake_.reset();
  health_timer_.disarm();
  pause_until_wanted();
  last_attempt_ = {};
}

void Link::stop() {
  state_ = State::stopped;
  timer_.disarm();
  health_timer_.disarm();
  wire_.reset();
}

// --- Health ----------------------------------------------------------------------------------------------------------

void Link::watch_health() {
  last_heard_ = executor_.now();
  asked_.reset();
  health_timer_.arm(saturating_add(last_heard_, silence_), [this] { check_health(); });
}

void Link::check_health() {
  const TimePoint now = executor_.now();
  if (asked_ && now >= saturating_add(*asked_, silence_)) {
    // The answer may be there already, if it is we who were asleep.
    receive();
    if (state_ != State::ready) return;
    if (asked_) return break_off({errc::unavailable, options_.endpoint() + ": the server has gone silent"});
  }
  if (!asked_ && now >= saturating_add(last_heard_, silence_)) {
    asked_ = now;
    health_timer_.arm(saturating_add(now, silence_), [this] { check_health(); });
    return user_.link_silent();
  }
  health_timer_.arm(saturating_add(asked_.value_or(last_heard_), silence_), [this] { check_health(); });
}

}  // namespace dlock::redis
