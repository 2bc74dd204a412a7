#include "backends/redis/command_client.hpp"

#include <algorithm>
#include <utility>

#include "backends/redis/server_error.hpp"

namespace dlock::redis {

CommandClient::CommandClient(Executor& executor, const Options& options, WireFactory wires, Observer* observer)
    : executor_(executor),
      options_(options),
      observer_(observer),
      timer_(executor),
      link_(executor, options, std::move(wires), *this) {}

CommandClient::~CommandClient() = default;

CommandClient::RequestId CommandClient::request(std::vector<std::string> command, TimePoint deadline, Handler done) {
  Request request;
  request.words = std::move(command);
  request.deadline = deadline;
  request.done = std::move(done);
  return submit(std::move(request));
}

CommandClient::RequestId CommandClient::run(const Script& script, std::vector<std::string> keys,
                                            std::vector<std::string> arguments, TimePoint deadline, Handler done) {
  Request request;
  request.script = &script;
  request.words.reserve(1 + keys.size() + arguments.size());
  request.words.push_back(std::to_string(keys.size()));
  std::move(keys.begin(), keys.end(), std::back_inserter(request.words));
  std::move(arguments.begin(), arguments.end(), std::back_inserter(request.words));
  request.deadline = deadline;
  request.done = std::move(done);
  return submit(std::move(request));
}

CommandClient::RequestId CommandClient::submit(Request request) {
  const RequestId id = request.id = next_id_++;
  if (link_.ready()) {
    send(std::move(request));
  } else {
    arm(request.deadline);
    waiting_.emplace(id, std::move(request));
    link_.want();
  }
  return id;
}

bool CommandClient::withdraw(RequestId id) {
  if (waiting_.erase(id) != 0) return true;
  const auto found =
      std::find_if(in_flight_.begin(), in_flight_.end(), [id](const Request& request) { return request.id == id; });
  if (found != in_flight_.end()) found->done = nullptr;
  return false;
}

void CommandClient::send(Request request) {
  std::vector<std::string_view> words;
  words.reserve(request.words.size() + 2);
  if (request.script != nullptr) {
    // Whole at its first use on a connection: a script that has to be sent again would change places with what was sent
    // after it.
    if (introduced_.insert(request.script).second) request.whole_script = true;
    words.emplace_back(request.whole_script ? "EVAL" : "EVALSHA");
    words.emplace_back(request.whole_script ? request.script->text : request.script->sha1);
  }
  words.insert(words.end(), request.words.begin(), request.words.end());
  std::string bytes;
  append_command(bytes, words);
  link_.write(bytes);
  request.end = link_.written();
  request.sent = executor_.now();
  arm(std::min(request.deadline, saturating_add(request.sent, options_.response_timeout)));
  in_flight_.push_back(std::move(request));
  schedule_flush();
}

// A lone request goes out at once. When others are under way, more are likely to follow in this turn of the loop, and
// they share one system call and one packet.
void CommandClient::schedule_flush() {
  if (delivering_ || flush_posted_) return;
  if (in_flight_.size() == 1) return link_.flush();
  flush_posted_ = true;
  executor_.post(lifetime_.guard([this] {
    flush_posted_ = false;
    if (link_.ready()) link_.flush();
  }));
}

void CommandClient::link_ready() {
  delivering_ = true;  // until link_drained(), which follows
  if (observer_ != nullptr) observer_->connected();
  auto requests = std::exchange(waiting_, {});
  for (auto& [id, request] : requests) send(std::move(request));
}

void CommandClient::link_received(Reply reply) {
  if (in_flight_.empty()) {
    return link_.break_off({errc::protocol, options_.endpoint() + ": an answer that nobody asked for"});
  }
  delivering_ = true;
  Request request = std::move(in_flight_.front());
  in_flight_.pop_front();
  answered(std::move(request), std::move(reply));
}

void CommandClient::answered(Request request, Reply reply) {
  if (!reply.is(Reply::Type::error)) {
    if (request.done) request.done(std::move(reply), request.sent);
    return;
  }
  const ServerError error = classify(reply.text);
  if (error == ServerError::no_script && request.script != nullptr && !request.whole_script) {
    // It was not run: the server was restarted, or told to forget its scripts. Nobody waits for an answer any more?
    // Then nobody wants the effect either.
    if (!request.done) return;
    request.whole_script = true;
    return send(std::move(request));
  }
  Failure why = to_failure(reply.text);
  if (suggests_other_server(error)) link_.break_off({errc::unavailable, options_.endpoint() + ": " + why.detail});
  if (request.done) request.done(std::move(why), request.sent);
}

void CommandClient::link_drained() {
  delivering_ = false;
  link_.flush();
}

void CommandClient::link_down(const Failure& why, bool was_ready) {
  delivering_ = false;
  const std::uint64_t sent = link_.sent();
  introduced_.clear();
  auto in_flight = std::exchange(in_flight_, {});
  auto waiting = std::exchange(waiting_, {});
  if (was_ready && observer_ != nullptr) observer_->broken(why);
  for (auto& request : in_flight) {
    if (!request.done) continue;
    Failure failure = why;
    if (why.code != errc::protocol) {
      // A command that did not get out whole is never carried out.
      failure.code = request.end <= sent ? errc::ambiguous : errc::unavailable;
    }
    request.done(std::move(failure), request.sent);
  }
  for (auto& [id, request] : waiting) request.done(why, {});
}

void CommandClient::link_silent() {
  if (!in_flight_.empty()) return;  // their answers are as good
  (void)request({"PING"}, TimePoint::max(), [](const Result<Reply>&, TimePoint) {});
}

void CommandClient::reconnect(Failure why) {
  if (link_.ready()) link_.break_off(std::move(why));
}

void CommandClient::stop() {
  link_.stop();
  timer_.disarm();
  waiting_.clear();
  in_flight_.clear();
}

// --- Deadlines -------------------------------------------------------------------------------------------------------

// One timer for all: it is moved only to be earlier, and looks again when it finds nothing to do.
void CommandClient::arm(TimePoint at) {
  if (at >= armed_for_) return;
  armed_for_ = at;
  timer_.arm(at, [this] { check_deadlines(); });
}

void CommandClient::check_deadlines() {
  armed_for_ = TimePoint::max();
  const auto overdue = [&](const Request& request) { return executor_.now() >= request.deadline; };
  // The answers may be there already, if it is we who were asleep.
  if (link_.ready() && std::any_of(in_flight_.begin(), in_flight_.end(), overdue)) link_.receive();
  const TimePoint now = executor_.now();
  if (!in_flight_.empty() && now >= saturating_add(in_flight_.front().sent, options_.response_timeout)) {
    link_.break_off({errc::unavailable, options_.endpoint() + ": no answer within the response timeout"});
  }
  fail_overdue(now);
  TimePoint next = TimePoint::max();
  for (const Request& request : in_flight_) {
    if (request.done) next = std::min(next, request.deadline);
    next = std::min(next, saturating_add(request.sent, options_.response_timeout));
  }
  for (const auto& [id, request] : waiting_) next = std::min(next, request.deadline);
  if (next != TimePoint::max()) arm(next);
}

void CommandClient::fail_overdue(TimePoint now) {
  std::vector<std::pair<Handler, TimePoint>> unanswered;
  for (Request& request : in_flight_) {
    if (!request.done || now < request.deadline) continue;
    // The reply may still come and must find its place.
    unanswered.emplace_back(std::exchange(request.done, nullptr), request.sent);
  }
  std::vector<Handler> unsent;
  for (auto at = waiting_.begin(); at != waiting_.end();) {
    if (now >= at->second.deadline) {
      unsent.push_back(std::move(at->second.done));
      at = waiting_.erase(at);
    } else {
      ++at;
    }
  }
  for (const auto& [done, sent] : unanswered) {
    done(Failure{errc::ambiguous, options_.endpoint() + ": no answer in time"}, sent);
  }
  for (const Handler& done : unsent) {
    Failure why = link_.problem();
    if (!why.code) why = {errc::unavailable, options_.endpoint() + ": no connection in time"};
    done(std::move(why), {});
  }
}

}  // namespace dlock::redis
