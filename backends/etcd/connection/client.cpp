#include "backends/etcd/connection/client.hpp"

#include <algorithm>
#include <utility>

namespace dlock::etcd {

namespace {

// A connection of this age was good.
constexpr std::chrono::seconds proof_time{2};
// If a member closes a connection sooner, that is reported, because idleness cannot be the reason.
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
      hosts_(options.hosts),
      connect_timer_(executor),
      metadata_{{"hasleader", "true"}},
      idle_timer_(executor) {
  for (std::size_t left = hosts_.size(); left > 1; --left) {
    std::swap(hosts_[left - 1], hosts_[executor_.random() % left]);
  }
}

Client::~Client() = default;

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

// The members share the connect timeout.
void Client::connect() {
  if (failed_hosts_ != 0) std::rotate(hosts_.begin(), hosts_.begin() + 1, hosts_.end());
  const TimePoint deadline =
      saturating_add(executor_.now(), options_.connect_timeout / static_cast<int>(hosts_.size()));
  connect_timer_.arm(deadline, [this] { down({errc::unavailable, here() + ": no connection in time"}); });
  connection_.emplace();
  member_ = members_(executor_, hosts_.front(), *this);
  member_->open(deadline);
}

void Client::member_opened() {
  options_.user.empty() ? become_ready() : log_in();
}

void Client::log_in() {
  std::erase_if(metadata_, [](const auto& item) { return item.first == token_name; });
  Result<std::string> password = options_.password;
  if (options_.password_file) password = options_.password_file->read();
  if (!password.ok()) return break_off({errc::unavailable, here() + ": " + password.failure().detail});
  login_ = member_->call(method_authenticate, metadata_, authenticate(options_.user, password.value()));
  if (login_ == 0) return break_off({errc::unavailable, here() + ": the member is closing the connection"});
  member_->flush();
}

void Client::logged_in(const std::string& answer, const GrpcStatus& status) {
  login_ = 0;
  login_is_off_ = is_without_logins(status);
  Failure why = login_is_off_ ? Failure{} : to_failure(status, here());
  if (why.code == errc::ambiguous) why.code = errc::unavailable;
  if (why.code) return down(common::login_failed(options_.password_file, std::move(why)));
  if (!login_is_off_) {
    auto token = read_authenticate(answer);
    if (!token.ok()) return down(token.failure());
    metadata_.emplace_back(token_name, std::move(token.value()));
    common::login_accepted(options_.password_file);
  }
  if (!ready()) return become_ready();
  connect_timer_.disarm();
  const Lifetime::Watch life = lifetime_.watch();
  user_.client_logged_in();
  if (!life.over()) send_waiting();
}

void Client::login_again() {
  if (!may_send() || options_.user.empty()) return;
  connect_timer_.arm(answer_by(), [this] { leave_member({errc::unavailable, here() + ": no answer to a login"}); });
  log_in();
}

void Client::become_ready() {
  connect_timer_.disarm();
  failed_hosts_ = 0;
  ready_since_ = last_traffic_ = executor_.now();
  is_verified_ = is_foreign_ = false;
  reconnect_.ready();
  keep_busy();
  const Lifetime::Watch life = lifetime_.watch();
  user_.client_ready();
  if (!life.over()) send_waiting();
}

// --- Calls -----------------------------------------------------------------------------------------------------------

void Client::call(std::string_view method, std::string request, TimePoint deadline, CallHandler done, Turn turn) {
  Requests::Entry entry{.id = requests_.next_id(),
                        .deadline = deadline,
                        .payload = {.method = method, .request = std::move(request), .done = std::move(done)}};
  if (may_send() && (turn == Turn::first || member_->room() > 0)) return send(std::move(entry));
  requests_.wait(std::move(entry));
  reconnect_.want();
}

void Client::call(const Transaction& transaction, TimePoint deadline, Callback<Result<TransactionAnswer>> done,
                  Turn turn) {
  call(
      method_transaction, transaction.request(), deadline,
      [steps = transaction.steps(), done = std::move(done)](const Result<std::string>& answer, TimePoint) {
        done(answer.ok() ? read_transaction(answer.value(), steps) : Result<TransactionAnswer>(answer.failure()));
      },
      turn);
}

void Client::send_waiting() {
  if (!may_send()) return;
  for (auto& entry : requests_.take_waiting(member_->room())) send(std::move(entry));
}

void Client::send(Requests::Entry entry) {
  const CallId call = member_->call(entry.payload.method, metadata_, entry.payload.request);
  if (call == 0) {
    requests_.wait(std::move(entry));
    return leave_closing_member();
  }
  entry.id = static_cast<Requests::Id>(call);
  entry.sent = executor_.now();
  entry.payload.revision = revision_;
  entry.patience = saturating_add(entry.sent, options_.response_timeout);
  requests_.sent(std::move(entry));
  schedule_flush();
}

// A lone call is sent at once. If others are in flight, this turn of the loop probably makes more.
void Client::schedule_flush() {
  if (delivering_ || flush_posted_) return;
  if (requests_.under_way().size() == 1) return member_->flush();
  flush_posted_ = true;
  executor_.post(connection_->guard([this] {
    flush_posted_ = false;
    member_->flush();
  }));
}

void Client::member_event(Grpc::Event event) {
  delivering_ = true;
  if (const auto found = streams_.find(event.call); found != streams_.end()) {
    Stream& stream = *found->second;
    if (event.message) return stream.stream_message(*event.message);
    streams_.erase(found);
    return stream.stream_ended(event.status);
  }
  if (event.message) return void(messages_.insert_or_assign(event.call, *std::move(event.message)));
  if (auto received = messages_.extract(event.call)) event.message = std::move(received.mapped());
  if (event.call == login_) return logged_in(event.message.value_or(""), event.status);
  auto entry = requests_.take(static_cast<Requests::Id>(event.call));
  if (entry) answered(*std::move(entry), std::move(event.message), event.status);
}

void Client::answered(Requests::Entry entry, std::optional<std::string> message, const GrpcStatus& status) {
  CallRequest& request = entry.payload;
  const Outcome outcome = outcome_of(status);
  // A grant of a lease proves nothing about transactions, for which a proxy may hang up.
  const bool about_locks = request.method == method_transaction;
  if (about_locks && outcome != Outcome::unavailable) reconnect_.answered();
  const bool unauthorized = outcome == Outcome::unauthorized && !options_.user.empty();
  if ((unauthorized || status.not_carried_out) && !std::exchange(request.repeated, true)) {
    if (!request.done) return;
    entry.id = requests_.next_id();
    requests_.wait(std::move(entry));
    return unauthorized ? login_again() : void();  // otherwise it is sent as soon as there is room
  }
  Failure why = to_failure(status, here());
  if (outcome == Outcome::success && !message) why = {errc::protocol, here() + ": an answer without a message"};
  // A member of a different cluster does not know the lease, either.
  if (outcome == Outcome::no_lease && !is_verified_) why.code = errc::unavailable;
  if (outcome == Outcome::unavailable) leave_later({errc::unavailable, why.detail});
  if (!why.code && !is_same_cluster(read_header_of(*message), request)) {
    why = {errc::unavailable, here() + ": this member is of a different cluster than those before it"};
    leave_later(why);
  }
  if (!why.code && about_locks) {
    reconnect_.proven();
    user_.client_answered();
  }
  if (!request.done) return;
  why.code ? request.done(std::move(why), entry.sent) : request.done(*std::move(message), entry.sent);
}

// If not, and if a connection to each member gave the same result, the new cluster is accepted.
bool Client::is_same_cluster(const Header& header, const CallRequest& request) {
  if (header.cluster == 0) return true;
  const bool different = cluster_ != 0 && header.cluster != cluster_;
  if (different && !std::exchange(is_foreign_, true)) ++foreign_connections_;
  if (different && foreign_connections_ < hosts_.size()) return false;
  // Only the answers to transactions have no older revision than was known before.
  const bool back =
      !different && request.method == method_transaction && header.revision < std::min(request.revision, revision_);
  revision_ = different || back ? header.revision : std::max(revision_, header.revision);
  cluster_ = header.cluster;
  is_verified_ = true;
  foreign_connections_ = 0;
  if (different || back) user_.cluster_changed();
  return true;
}

// --- Streams ---------------------------------------------------------------------------------------------------------

CallId Client::open_stream(std::string_view method, Stream& stream) {
  if (!may_send()) return 0;
  const CallId call = member_->open_stream(method, metadata_);
  call == 0 ? leave_closing_member() : void(streams_.emplace(call, &stream));
  return call;
}

void Client::send(CallId stream, std::string_view message) {
  if (!streams_.contains(stream)) return;
  member_->send(stream, message);
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
  member_->closing() ? leave_closing_member() : send_waiting();
}

void Client::leave_closing_member() {
  if (!requests_.under_way().empty()) return;
  executor_.post(connection_->guard([this] {
    if (ready()) break_off({errc::unavailable, here() + ": the member is closing the connection"}, true);
  }));
}

void Client::leave_later(Failure why) {
  executor_.post(connection_->guard([this, why = std::move(why)] { leave_member(why); }));
}

void Client::leave_member(Failure why) {
  if (ready()) break_off(std::move(why));
}

void Client::break_off(Failure why, bool in_order) {
  member_->discard();
  down(std::move(why), in_order);
}

void Client::member_closed(Failure why, bool orderly) {
  if (ready() && !reconnect_.is_answered()) why.detail += common::nothing_answered;
  down(std::move(why), orderly);
}

void Client::down(Failure why, bool orderly) {
  const bool was_ready = ready();
  const bool in_order = orderly && was_ready && executor_.now() >= saturating_add(ready_since_, shortest_idle_limit);
  if (in_order) learn_idle_limit();
  idle_timer_.disarm();
  connect_timer_.disarm();
  const auto member = std::move(member_);  // may be the caller
  connection_.reset();
  delivering_ = flush_posted_ = false;
  login_ = 0;
  messages_.clear();
  streams_.clear();
  const auto in_flight = requests_.take_sent();
  ++failed_hosts_;
  const bool round_over = !in_order && (failed_hosts_ % hosts_.size() == 0 || common::is_final_refusal(why));
  const bool reported = was_ready || round_over;
  std::vector<Requests::Entry> waiting;
  if (round_over) waiting = requests_.take_waiting();
  reported ? reconnect_.down(why) : reconnect_.down_until(why, executor_.now());
  const Lifetime::Watch life = lifetime_.watch();
  if (reported) user_.client_down(why, in_order);
  // The reason says nothing about the outcome of those in flight.
  if (!life.over()) fail(in_flight, {errc::ambiguous, why.detail});
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

void Client::stop() {
  member_.reset();
  connection_.reset();
  connect_timer_.disarm();
  idle_timer_.disarm();
  reconnect_.stop();
  requests_.clear();
  streams_.clear();
}

// --- Idle connections ------------------------------------------------------------------------------------------------

void Client::learn_idle_limit() {
  const std::chrono::nanoseconds idle = executor_.now() - last_traffic_;
  if (idle < shortest_idle_limit) return;
  const auto before = std::exchange(last_idle_, idle);
  if (std::chrono::abs(idle - before) > before / 4) return;  // for different reasons
  const auto shorter = std::min(idle, before);
  idle_limit_ = idle_limit_.count() == 0 ? shorter : std::min(idle_limit_, shorter);
}

// Sends a request, because members close connections with frequent pings of HTTP/2.
void Client::keep_busy() {
  if (idle_limit_.count() == 0) return;
  const auto pause = idle_limit_ / 4 * 3;
  if (executor_.now() >= saturating_add(last_traffic_, pause)) {
    last_traffic_ = executor_.now();
    call(Transaction().read({.range = {options_.prefix + ".session/"}, .keys_only = true}), answer_by(),
         [](const Result<TransactionAnswer>&) {});  // any answer will do
  }
  idle_timer_.arm(saturating_add(last_traffic_, pause), [this] { keep_busy(); });
}

// --- Deadlines -------------------------------------------------------------------------------------------------------

void Client::requests_catch_up() {
  if (ready()) member_->receive();
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
