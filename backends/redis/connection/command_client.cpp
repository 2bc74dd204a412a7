#include "backends/redis/connection/command_client.hpp"

#include <utility>

#include "backends/redis/connection/server_error.hpp"
#include "backends/redis/connection/server_info.hpp"
#include "backends/redis/timing.hpp"

namespace dlock::redis {

CommandClient::CommandClient(Executor& executor, const Options& options, StreamFactory streams,
                             common::ConnectionObserver* observer)
    : executor_(executor),
      options_(options),
      observer_(observer),
      requests_(executor, *this),
      role_timer_(executor),
      link_(executor, options, std::move(streams), *this) {}

CommandClient::~CommandClient() = default;

// --- Requests --------------------------------------------------------------------------------------------------------

CommandClient::RequestId CommandClient::request(Command command, TimePoint deadline, Handler done, About about) {
  Request request;
  request.words = std::move(command);
  request.about = about;
  request.done = std::move(done);
  return submit(std::move(request), deadline);
}

CommandClient::RequestId CommandClient::run(const Script& script, Command words, TimePoint deadline, Handler done,
                                            AtTheEnd at_the_end, bool whole) {
  Request request;
  request.script = &script;
  request.words = std::move(words);
  request.done = std::move(done);
  request.at_the_end = at_the_end;
  request.whole_script = whole;
  return submit(std::move(request), deadline);
}

CommandClient::RequestId CommandClient::submit(Request request, TimePoint deadline) {
  Requests::Entry entry{.id = requests_.next_id(), .deadline = deadline, .payload = std::move(request)};
  const RequestId id = entry.id;
  if (link_.ready()) {
    send(std::move(entry));
  } else {
    requests_.wait(std::move(entry));
    link_.want();
  }
  return id;
}

void CommandClient::append_bytes(std::string& out, Request& request) {
  if (request.script == nullptr) return request.words.append_to(out);
  // A script is sent whole at its first use on a connection: if it had to be sent again after NOSCRIPT, later requests
  // would overtake it.
  if (introduced_.insert(request.script).second) request.whole_script = true;
  if (request.whole_script) {
    request.words.append_to(out, {"EVAL", request.script->text});
  } else {
    request.words.append_to(out, {"EVALSHA", request.script->sha1});
  }
}

void CommandClient::send(Requests::Entry entry) {
  bytes_.clear();
  append_bytes(bytes_, entry.payload);
  link_.write(bytes_);
  entry.payload.end = link_.written();
  entry.sent = executor_.now();
  entry.patience = saturating_add(entry.sent, options_.response_timeout);
  requests_.sent(std::move(entry));
  schedule_flush();
}

// A lone request is sent at once. If others are in flight, this turn of the loop probably makes more, and they share
// one system call and one packet.
void CommandClient::schedule_flush() {
  if (delivering_ || flush_posted_) return;
  if (requests_.under_way().size() == 1) return link_.flush();
  flush_posted_ = true;
  executor_.post(lifetime_.guard([this] {
    flush_posted_ = false;
    if (link_.ready()) link_.flush();
  }));
}

void CommandClient::answered(Requests::Entry entry, Reply reply) {
  Request& request = entry.payload;
  if (!reply.is(Reply::Type::error)) {
    if (request.about == About::locks) answered_about_locks();
    if (request.done) request.done(std::move(reply), entry.sent);
    return;
  }
  const ServerError error = classify(reply.text);
  if (request.about == About::locks && !suggests_other_server(error)) answered_about_locks();
  if (error == ServerError::no_script && request.script != nullptr && !request.whole_script) {
    // It was not run: the server was restarted, or its scripts were flushed. If the answer is no longer wanted, neither
    // is the effect.
    if (!request.done) return;
    request.whole_script = true;
    return send(std::move(entry));
  }
  // Cluster redirects, retries or fails the request.
  if (options_.cluster && is_about_cluster(error)) {
    if (request.whole_script) introduced_.erase(request.script);  // it was not run, so the server may not have it
    if (request.done) request.done(std::move(reply), entry.sent);
    return;
  }
  Failure why = to_failure(reply.text);
  if (suggests_other_server(error)) link_.break_off({errc::unavailable, options_.endpoint() + ": " + why.detail});
  if (request.done) request.done(std::move(why), entry.sent);
}

void CommandClient::answered_about_locks() {
  if (link_.is_answered()) return;
  link_.answered();
  reported_broken_ = false;
  if (observer_ != nullptr) observer_->connected();
}

// --- The connection --------------------------------------------------------------------------------------------------

void CommandClient::link_ready() {
  delivering_ = true;  // until link_drained(), which follows
  if (knows_role()) role_timer_.arm(saturating_add(executor_.now(), role_beat), [this] { check_role(); });
  if (observer_ != nullptr) observer_->opened();
  bool asks = !reported_broken_;
  for (auto& entry : requests_.take_waiting()) {
    asks = asks || entry.payload.about == About::locks;
    send(std::move(entry));
  }
  // If no request shows soon whether locks are served again, a probe does.
  if (asks) return;
  (void)request(
      {"EVAL", "return 1", "0"}, TimePoint::max(), [](const Result<Reply>&, TimePoint) {}, About::locks);
}

void CommandClient::link_received(Reply reply) {
  auto entry = requests_.take_oldest();
  if (!entry) return link_.break_off({errc::protocol, options_.endpoint() + ": the server answered without a request"});
  delivering_ = true;
  answered(*std::move(entry), std::move(reply));
}

void CommandClient::link_drained() {
  delivering_ = false;
  link_.flush();
}

void CommandClient::link_down(const Failure& why, bool was_ready) {
  ++connection_number_;
  delivering_ = false;
  role_timer_.disarm();
  const std::uint64_t sent = link_.sent();
  introduced_.clear();
  const auto under_way = requests_.take_sent();
  const auto waiting = requests_.take_waiting();
  if (was_ready && observer_ != nullptr) {
    reported_broken_ = true;
    observer_->broken(why);
  }
  for (const auto& entry : under_way) {
    if (!entry.payload.done) continue;
    Failure failure = why;
    if (why.code != errc::protocol) {
      // The server never executes a command that it did not receive completely.
      failure.code = entry.payload.end <= sent ? errc::ambiguous : errc::unavailable;
    }
    entry.payload.done(std::move(failure), entry.sent);
  }
  for (const auto& entry : waiting) entry.payload.done(why, {});
}

void CommandClient::link_silent() {
  if (!requests_.under_way().empty()) return;  // their answers prove as much
  (void)request({"PING"}, TimePoint::max(), [](const Result<Reply>&, TimePoint) {});
}

// A demoted master may keep its connections, and even accept writes as a replica.
void CommandClient::check_role() {
  role_timer_.arm(saturating_add(executor_.now(), role_beat), [this] { check_role(); });
  (void)request(question_for(link_.role_question()), TimePoint::max(), [this](const Result<Reply>& reply, TimePoint) {
    const auto role = reply.ok() ? role_in(reply.value()) : std::nullopt;
    if (!role || *role == "master") return;
    const Failure why = not_master(options_, *role);
    link_.break_off({errc::unavailable, options_.endpoint() + ": " + why.detail});
  });
}

void CommandClient::reconnect(Failure why) {
  if (link_.ready()) link_.break_off(std::move(why));
}

void CommandClient::rest(const Failure& why) {
  link_.rest();
  link_down(why, false);
}

void CommandClient::last_word(const Script& script, Command words) {
  Request& request = last_words_.emplace_back();
  request.script = &script;
  request.words = std::move(words);
}

void CommandClient::stop() {
  std::string bytes;
  for (Request& request : last_words_) append_bytes(bytes, request);
  for (auto& entry : requests_.take_waiting()) {
    if (entry.payload.at_the_end == AtTheEnd::sent) append_bytes(bytes, entry.payload);
  }
  role_timer_.disarm();
  link_.stop(bytes);
  requests_.clear();
  last_words_.clear();
}

// --- Deadlines -------------------------------------------------------------------------------------------------------

void CommandClient::requests_catch_up() {
  if (link_.ready()) link_.receive();
}

TimePoint CommandClient::requests_unresponsive() {
  link_.break_off({errc::unavailable, options_.endpoint() + ": no answer within the response timeout"});
  return TimePoint::max();
}

void CommandClient::requests_overdue(std::vector<Requests::Entry> sent, std::vector<Requests::Entry> unsent) {
  for (const auto& entry : sent) {
    entry.payload.done(Failure{errc::ambiguous, options_.endpoint() + ": no answer in time"}, entry.sent);
  }
  for (const auto& entry : unsent) entry.payload.done(link_.problem(), {});
}

}  // namespace dlock::redis
