#include "backends/redis/connection/link.hpp"

#include <string>
#include <utility>

#include <dlock/spi/result.hpp>

#include "backends/common/tls.hpp"
#include "backends/redis/timing.hpp"

namespace dlock::redis {

Link::Link(Executor& executor, const Options& options, StreamFactory streams, User& user, bool insists)
    : executor_(executor),
      options_(options),
      streams_(std::move(streams)),
      user_(user),
      reconnect_(executor, {.lasting = proof_time, .insists = insists}, [this] { connect(); }),
      health_(executor, options.response_timeout, *this),
      connect_timer_(executor) {}

Link::~Link() = default;

// --- Connecting ------------------------------------------------------------------------------------------------------

void Link::connect() {
  connect_by_ = saturating_add(executor_.now(), options_.connect_timeout);
  refused_addresses_ = 0;
  connect_timer_.arm(connect_by_, [this] { down(no_connection("no connection within the connect timeout")); });
  open();
}

void Link::open() {
  written_ = sent_ = 0;
  connection_ = std::make_unique<Connection>(streams_(executor_, options_, *this));
  connection_->stream->open(connect_by_);
}

Failure Link::no_connection(std::string why) const {
  if (connection_ && connection_->stream->tls_unanswered()) why += common::perhaps_no_tls;
  return {errc::unavailable, options_.endpoint() + ": " + why};
}

Failure Link::problem() const {
  if (reconnect_.problem().code) return reconnect_.problem();
  return no_connection("no connection in time");
}

void Link::opened() {
  Result<std::string> password = options_.password.value_or("");
  if (options_.password_file) password = options_.password_file->read();
  if (!password.ok()) return down(no_connection(password.failure().detail));
  handshake_.emplace(options_);
  write(handshake_->commands(password.value()));
  connection_->stream->flush();
}

void Link::received(std::string_view bytes) {
  const Lifetime::Watch life = connection_->lifetime.watch();
  ReplyReader& replies = connection_->replies;
  replies.feed(bytes);
  while (auto reply = replies.next()) {
    take(*std::move(reply));
    if (life.over()) return;
  }
  if (replies.problem().empty()) return;
  closed({errc::protocol, connection_->stream->peer_name() + " does not speak Redis's protocol: " + replies.problem()},
         false);
}

void Link::take(Reply reply) {
  if (ready()) return user_.link_received(std::move(reply));
  const auto verdict = handshake_->replied(reply);
  if (!verdict) return;
  if (verdict->code) {
    // The name may have several addresses, one of them the master's.
    if (handshake_->refused_role() && ++refused_addresses_ < connection_->stream->refuse_peer()) {
      handshake_.reset();
      const auto gone = std::move(connection_);  // may be on the call stack
      return open();
    }
    Failure why{verdict->code, options_.endpoint() + ": " + verdict->detail};
    return down(common::login_failed(options_.password_file, std::move(why)));
  }
  common::login_accepted(options_.password_file);
  role_question_ = handshake_->role_question();
  handshake_.reset();
  connect_timer_.disarm();
  reconnect_.ready();
  health_.start();
  user_.link_ready();
}

// --- Connected -------------------------------------------------------------------------------------------------------

void Link::write(std::string_view bytes) {
  connection_->stream->write(bytes);
  written_ += bytes.size();
}

void Link::drained() {
  health_.heard();
  if (ready()) user_.link_drained();
}

void Link::health_dead() {
  break_off({errc::unavailable, options_.endpoint() + ": the server is unresponsive"});
}

// --- The end ---------------------------------------------------------------------------------------------------------

void Link::closed(Failure why, bool /*orderly*/) {
  if (ready() && !is_answered()) why.detail += common::nothing_answered;
  down(std::move(why));
}

void Link::break_off(Failure why) {
  if (!connection_) return;
  connection_->stream->discard();
  down(std::move(why));
}

void Link::down(Failure why) {
  const bool was_ready = ready();
  sent_ = connection_->stream->sent();
  const auto gone = std::move(connection_);  // may be on the call stack
  drop_connection();
  reconnect_.down(why);
  user_.link_down(why, was_ready);
}

void Link::drop_connection() {
  connect_timer_.disarm();
  health_.stop();
  handshake_.reset();
  if (connection_) sent_ = connection_->stream->sent();
  connection_.reset();
}

void Link::rest() {
  drop_connection();
  reconnect_.rest();
}

void Link::stop(std::string_view last_words) {
  if (connection_ && (handshake_ || ready()) && !last_words.empty()) {
    write(last_words);
    connection_->stream->flush();
  }
  drop_connection();
  reconnect_.stop();
}

}  // namespace dlock::redis
