#include "backends/etcd/connection/client.hpp"

#include <algorithm>
#include <utility>

namespace dlock::etcd {

namespace {

// A connection that stood for so long was good.
constexpr std::chrono::seconds proof_time{2};
// If a member closes a connection sooner, that is reported, and not because the connection was idle.
constexpr std::chrono::seconds shortest_idle_limit{1};
constexpr const char* token_name = "token";

}  // namespace

Client::Client(Executor& executor, const Options& options, MemberFactory members, User& user)
    : executor_(executor),
      options_(options),
      members_(std::move(members)),
      user_(user),
      requests_(executor, *this),
      reconnect_(executor, {.lasting = proof_time}, [this] { connect(); }),
      connect_timer_(executor),
      metadata_{{"hasleader", "true"}},
      idle_timer_(executor) {}

Client::~Client() = default;

std::string Client::here() const {
  return hosts_.empty() ? options_.endpoint() : hosts_.front().to_string();
}

Failure Client::problem() const {
  if (reconnect_.problem().code) return reconnect_.problem();
  if (may_send()) {
    return {errc::unavailable, here() + ": earlier calls were not answered in time, and the server allows " +
                                   std::to_string(member_->most_calls()) +
                                   " concurrent streams (SETTINGS_MAX_CONCURRENT_STREAMS)"};
  }
  return {errc::unavailable, options_.endpoint() + ": not connected yet"};
}

// --- Connecting ------------------------------------------------------------------------------------------------------

void Client::choose_host() {
  if (!hosts_.empty()) {
    if (failed_hosts_ != 0) std::rotate(hosts_.begin(), hosts_.begin() + 1, hosts_.end());
    return;
  }
  hosts_ = options_.hosts;
  for (std::size_t left = hosts_.size(); left > 1; --left) {
    std::swap(hosts_[left - 1], hosts_[executor_.random() % left]);
  }
}

// All members get their turn within the connect timeout.
void Client::connect() {
  choose_host();
  ++connection_;
  const TimePoint deadline =
      saturating_add(executor_.now(), options_.connect_timeout / static_cast<int>(hosts_.size()));
  connect_timer_.arm(deadline, [this] { down({errc::unavailable, here() + ": no connection in time"}); });
  member_ = members_(executor_, hosts_.front(), *this);
  member_->open(deadline);
}

void Client::member_opened() {
  if (options_.user.empty()) return become_ready();
  log_in();
}

void Client::log_in() {
  std::erase_if(metadata_, [](const auto& item) { return item.first == token_name; });
  token_.clear();
  Result<std::string> password = options_.password;
  if (options_.password_file) password = options_.password_file->read();
  if (!password.ok()) return break_off({errc::unavailable, here() + ": " + password.failure().detail});
  login_ = member_->begin(method_authenticate, metadata_);
  if (login_ == 0) return break_off({errc::unavailable, here() + ": the member is closing the connection"});
  member_->send(login_, authenticate(options_.user, password.value()), true);
  member_->flush();
}

void Client::logged_in(GrpcStatus status) {
  login_ = 0;
  login_is_off_ = is_without_logins(status);
  Failure why = login_is_off_ ? Failure{} : to_failure(status, here());
  if (!why.code) {
    if (!login_is_off_) {
      auto token = read_authenticate(token_);
      if (!token.ok()) return down(token.failure());
      metadata_.emplace_back(token_name, std::move(token.value()));
      common::login_accepted(options_.password_file);
    }
    if (!ready()) return become_ready();
    connect_timer_.disarm();
    const Lifetime::Watch life = lifetime_.watch();
    user_.client_logged_in();
    return life.over() ? void() : send_waiting();
  }
  if (why.code == errc::ambiguous) why.code = errc::unavailable;
  down(common::login_failed(options_.password_file, std::move(why)));
}

void Client::login_again() {
  if (!ready() || login_ != 0 || options_.user.empty()) return;
  connect_timer_.arm(answer_by(), [this] { leave_member({errc::unavailable, here() + ": no answer to a login"}); });
  log_in();
}

void Client::become_ready() {
  connect_timer_.disarm();
  failed_hosts_ = 0;
  ready_since_ = last_traffic_ = executor_.now();
  is_verified_ = false;
  reconnect_.ready();
  keep_busy();
  const Lifetime::Watch life = lifetime_.watch();
  user_.client_ready();
  if (!life.over() && ready()) send_waiting();
}

void Client::send_waiting() {
  if (!has_room()) return;
  for (auto& entry : requests_.take_waiting(member_->room())) send(std::move(entry));
}

// --- Calls -----------------------------------------------------------------------------------------------------------

void Client::call(std::string_view method, std::string request, TimePoint deadline, CallHandler done, Turn turn) {
  Requests::Entry entry{.id = requests_.next_id(),
                        .deadline = deadline,
                        .payload = {.method = method, .request = std::move(request), .done = std::move(done)}};
  if (turn == Turn::first ? may_send() : has_room()) {
    send(std::move(entry));
  } else {
    requests_.wait(std::move(entry));
    reconnect_.want();
  }
}

void Client::call(const Transaction& transaction, TimePoint deadline, Callback<Result<TransactionAnswer>> done) {
  call(method_transaction, transaction.request(), deadline,
       [steps = transaction.steps(), done = std::move(done)](const Result<std::string>& answer, TimePoint) {
         if (!answer.ok()) return done(answer.failure());
         done(read_transaction(answer.value(), steps));
       });
}

void Client::send(Requests::Entry entry) {
  const CallId call = member_->begin(entry.payload.method, metadata_);
  if (call == 0) {
    requests_.wait(std::move(entry));
    return leave_closing_member();
  }
  member_->send(call, entry.payload.request, true);
  answers_.emplace(call, Answer{entry.id});
  entry.sent = executor_.now();
  entry.payload.revision = revision_;
  entry.patience = saturating_add(entry.sent, options_.response_timeout);
  requests_.sent(std::move(entry));
  schedule_flush();
}

// A lone call goes out at once. When others are under way, more are likely to follow in this turn of the loop.
void Client::schedule_flush() {
  if (delivering_ || flush_posted_) return;
  if (requests_.under_way().size() == 1) return member_->flush();
  flush_posted_ = true;
  executor_.post(lifetime_.guard([this] {
    flush_posted_ = false;
    if (member_) member_->flush();
  }));
}

void Client::member_said(CallId call, std::string message) {
  delivering_ = true;
  if (call == login_) {
    token_ = std::move(message);
  } else if (const auto stream = streams_.find(call); stream != streams_.end()) {
    stream->second->stream_said(message);
  } else if (const auto answer = answers_.find(call); answer != answers_.end()) {
    answer->second.message = std::move(message);
  }
}

void Client::member_ended(CallId call, GrpcStatus status) {
  delivering_ = true;
  if (call == login_) return logged_in(std::move(status));
  if (auto stream = streams_.extract(call)) return stream.mapped()->stream_ended(status);
  auto answer = answers_.extract(call);
  if (!answer) return;
  auto entry = requests_.take(answer.mapped().request);
  if (entry) answered(*std::move(entry), std::move(answer.mapped().message), status);
}

void Client::answered(Requests::Entry entry, std::optional<std::string> message, const GrpcStatus& status) {
  CallRequest& request = entry.payload;
  const Trouble trouble = trouble_in(status);
  // A grant of a lease says nothing about transactions, which a proxy may refuse by hanging up.
  const bool about_locks = request.method == method_transaction;
  if (about_locks && trouble != Trouble::unavailable) reconnect_.answered();
  if (trouble == Trouble::none) return succeeded(entry, std::move(message), about_locks);
  const bool unauthorized = trouble == Trouble::unauthorized && !options_.user.empty();
  if ((unauthorized || status.not_carried_out) && !std::exchange(request.repeated, true)) {
    if (!request.done) return;
    requests_.wait(std::move(entry));
    return unauthorized ? login_again() : void();  // otherwise it is sent as soon as there is room
  }
  Failure why = to_failure(status, here());
  // A member of a different cluster does not know the lease, either.
  if (trouble == Trouble::no_lease && !is_verified_) why.code = errc::unavailable;
  if (trouble == Trouble::unavailable) leave_later({errc::unavailable, why.detail});
  if (request.done) request.done(std::move(why), entry.sent);
}

void Client::succeeded(Requests::Entry& entry, std::optional<std::string> message, bool about_locks) {
  CallRequest& request = entry.payload;
  if (message && !is_ours(read_header_of(*message), request)) {
    Failure why{errc::unavailable, here() + ": this member is of a different cluster than those before it"};
    leave_later(why);
    if (request.done) request.done(std::move(why), entry.sent);
    return;
  }
  if (about_locks) {
    reconnect_.proven();
    user_.client_answered();
  }
  if (!request.done) return;
  if (message) return request.done(*std::move(message), entry.sent);
  request.done(Failure{errc::protocol, here() + ": an answer without a message"}, entry.sent);
}

// --- Streams ---------------------------------------------------------------------------------------------------------

CallId Client::open_stream(std::string_view method, Stream& stream) {
  if (!may_send()) return 0;
  const CallId call = member_->begin_stream(method, metadata_);
  if (call != 0) {
    streams_.emplace(call, &stream);
  } else {
    leave_closing_member();
  }
  return call;
}

void Client::send(CallId stream, std::string_view message) {
  if (!streams_.contains(stream)) return;
  member_->send(stream, message, false);
  schedule_flush();
}

void Client::close_stream(CallId stream) {
  if (streams_.erase(stream) == 0) return;
  member_->cancel(stream);
  schedule_flush();
}

// --- The end of a connection -----------------------------------------------------------------------------------------

void Client::member_drained() {
  delivering_ = false;
  last_traffic_ = executor_.now();
  if (!may_send()) return;
  if (member_->closing()) return leave_closing_member();
  send_waiting();
}

void Client::leave_closing_member() {
  if (!requests_.under_way().empty()) return;
  executor_.post(lifetime_.guard([this, connection = connection_] {
    if (connection != connection_ || !ready()) return;
    break_off({errc::unavailable, here() + ": the member is closing the connection"}, true);
  }));
}

// Not from inside a call to us.
void Client::leave_later(Failure why) {
  executor_.post(lifetime_.guard([this, connection = connection_, why = std::move(why)] {
    if (connection == connection_) leave_member(why);
  }));
}

void Client::leave_member(Failure why) {
  if (reconnect_.is_ready()) break_off(std::move(why));
}

void Client::break_off(Failure why, bool in_order) {
  if (!member_) return;
  member_->discard();
  down(std::move(why), in_order);
}

void Client::member_closed(Failure why, bool orderly) {
  if (ready() && !reconnect_.is_answered()) why.detail += common::nothing_answered;
  down(std::move(why), orderly);
}

void Client::down(Failure why, bool orderly) {
  const bool was_ready = reconnect_.is_ready();
  const bool in_order = orderly && was_ready && executor_.now() >= saturating_add(ready_since_, shortest_idle_limit);
  if (in_order) learn_idle_limit();
  idle_timer_.disarm();
  const auto gone = std::move(member_);  // may be what called us
  delivering_ = false;
  connect_timer_.disarm();
  login_ = 0;
  answers_.clear();
  streams_.clear();
  const auto under_way = requests_.take_sent();
  ++failed_hosts_;
  const bool round_over = !in_order && (failed_hosts_ % hosts_.size() == 0 || common::is_final_refusal(why));
  std::vector<Requests::Entry> waiting;
  if (round_over) waiting = requests_.take_waiting();
  if (was_ready || round_over) {
    reconnect_.down(why);
  } else {
    reconnect_.down_until(why, executor_.now());
  }
  const Lifetime::Watch life = lifetime_.watch();
  if (was_ready || round_over) user_.client_down(why, in_order);
  // Whatever ended the connection says nothing about those under way.
  if (!life.over()) fail(under_way, {errc::ambiguous, why.detail});
  if (!life.over()) fail(waiting, why);
}

template <class Entries>
void Client::fail(const Entries& entries, const Failure& why) {
  const Lifetime::Watch life = lifetime_.watch();
  for (const Requests::Entry& entry : entries) {
    if (life.over()) return;
    if (entry.payload.done) entry.payload.done(why, entry.sent);
  }
}

// --- Idle connections, other clusters --------------------------------------------------------------------------------

void Client::learn_idle_limit() {
  const std::chrono::nanoseconds idle = executor_.now() - last_traffic_;
  if (idle < shortest_idle_limit) return;
  const auto before = std::exchange(last_idle_, idle);
  if (std::chrono::abs(idle - before) > before / 4) return;  // each for a reason of its own
  const auto shorter = std::min(idle, before);
  idle_limit_ = idle_limit_.count() == 0 ? shorter : std::min(idle_limit_, shorter);
}

// By a request, because members close connections on which HTTP/2's pings are frequent.
void Client::keep_busy() {
  if (idle_limit_.count() == 0) return;
  const TimePoint due = saturating_add(last_traffic_, idle_limit_ / 4 * 3);
  if (executor_.now() < due) return idle_timer_.arm(due, [this] { keep_busy(); });
  last_traffic_ = executor_.now();
  idle_timer_.arm(saturating_add(last_traffic_, idle_limit_ / 4 * 3), [this] { keep_busy(); });
  call(method_transaction, Transaction().read({.range = {options_.prefix + ".session/"}, .keys_only = true}).request(),
       answer_by(), [](const Result<std::string>&, TimePoint) {});  // whatever the answer is
}

bool Client::is_ours(const Header& header, const CallRequest& request) {
  if (header.cluster == 0) return true;
  const bool other = cluster_ != 0 && header.cluster != cluster_;
  if (other) {
    if (std::exchange(stranger_, connection_) != connection_) ++strangers_;
    if (strangers_ < hosts_.size()) return false;
  }
  // Only the answers to transactions are of no earlier revision than what was known before.
  const bool back =
      !other && request.method == method_transaction && header.revision < std::min(request.revision, revision_);
  revision_ = other || back ? header.revision : std::max(revision_, header.revision);
  cluster_ = header.cluster;
  is_verified_ = true;
  strangers_ = 0;
  if (other || back) user_.cluster_changed();
  return true;
}

void Client::stop() {
  member_.reset();
  connect_timer_.disarm();
  idle_timer_.disarm();
  reconnect_.stop();
  requests_.clear();
  answers_.clear();
  streams_.clear();
}

// --- Deadlines -------------------------------------------------------------------------------------------------------

void Client::requests_catch_up() {
  if (reconnect_.is_ready()) member_->receive();
}

TimePoint Client::requests_unresponsive() {
  leave_member({errc::unavailable, here() + ": no answer within the response timeout"});
  return TimePoint::max();
}

void Client::requests_overdue(std::vector<Requests::Entry> sent, std::vector<Requests::Entry> unsent) {
  const Lifetime::Watch life = lifetime_.watch();
  fail(sent, {errc::ambiguous, here() + ": no answer in time"});
  if (!life.over()) fail(unsent, problem());
}

}  // namespace dlock::etcd
