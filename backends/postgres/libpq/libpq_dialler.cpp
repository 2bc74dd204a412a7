#include "backends/postgres/libpq/libpq_dialler.hpp"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <map>
#include <utility>

#include <dlock/duration.hpp>

#include "backends/common/received_bytes.hpp"
#include "backends/common/reconnect.hpp"
#include "backends/postgres/sql/connect_failure.hpp"
#include "backends/postgres/sql/identifier.hpp"
#include "backends/postgres/sql/preamble.hpp"

namespace dlock::postgres {

namespace {

using Parameters = std::map<std::string, std::string>;

// pg_stat_activity shows the purpose, unless the user has chosen a name.
std::string application_name(const Options& options, const Purpose& purpose) {
  if (!options.application_name.starts_with("dlock:")) return options.application_name;
  const std::string word = " " + purpose.word;
  return as_application_name(options.application_name.substr(0, max_identifier_bytes - word.size()) + word);
}

Parameters parameters_for(const Options& options, const Purpose& purpose, const Host& host,
                          const std::string& address) {
  Parameters parameters;
  for (const auto& [name, value] : keepalive_parameters(purpose)) parameters[name] = value;
  parameters["gssencmode"] = "disable";  // libpq would search for tickets, for an unknown time
  for (const auto& [name, value] : options.libpq) parameters[name] = value;
  parameters["host"] = host.name;  // for the certificate
  if (!address.empty()) parameters["hostaddr"] = address;
  parameters["port"] = std::to_string(host.port);
  if (options.user) parameters["user"] = *options.user;
  if (options.password) parameters["password"] = *options.password;
  if (options.database) parameters["dbname"] = *options.database;
  parameters["application_name"] = application_name(options, purpose);
  parameters["client_encoding"] = "UTF8";
  parameters["connect_timeout"] = "0";         // the dialler counts the time
  parameters["target_session_attrs"] = "any";  // the preamble asks
  return parameters;
}

PgHandle start_connecting(const Parameters& parameters) {
  std::vector<const char*> names;
  std::vector<const char*> values;
  for (const auto& [name, value] : parameters) {
    names.push_back(name.c_str());
    values.push_back(value.c_str());
  }
  names.push_back(nullptr);
  values.push_back(nullptr);
  return PgHandle(PQconnectStartParams(names.data(), values.data(), 0));
}

// The beginning of the bytes that have arrived. libpq does not report them, and can still read them.
std::string unread_bytes(int socket) {
  std::array<char, 4096> bytes{};
  const ssize_t count = ::recv(socket, bytes.data(), bytes.size(), MSG_PEEK | MSG_DONTWAIT);
  return count > 0 ? std::string(bytes.data(), static_cast<std::size_t>(count)) : std::string();
}

// The server has closed the connection, or it is broken.
bool has_hung_up(int socket) noexcept {
  pollfd about{.fd = socket, .events = POLLRDHUP, .revents = 0};
  return ::poll(&about, 1, 0) != 0;
}

// Before libpq reads the bytes that have arrived.
LoginState state_of(PGconn* connection) {
  LoginState state;
  state.encrypted = PQsslInUse(connection) == 1;
  switch (PQstatus(connection)) {
    case CONNECTION_SSL_STARTUP:
      state.stage = state.encrypted ? LoginState::Stage::tls_handshake : LoginState::Stage::offering_tls;
      break;
    case CONNECTION_AWAITING_RESPONSE:
      state.stage = LoginState::Stage::login;
      break;
    default:
      return state;
  }
  // In this order: the server may hang up between the two calls.
  state.unread = unread_bytes(PQsocket(connection));
  state.hung_up = has_hung_up(PQsocket(connection));
  return state;
}

}  // namespace

Dialler::Dialler(Executor& executor, const Options& options, const Purpose& purpose, Handler done)
    : executor_(executor), options_(options), purpose_(purpose), done_(std::move(done)), timer_(executor) {}

void Dialler::start(TimePoint deadline) {
  deadline_ = deadline;
  for (const Host& host : options_.hosts) {
    targets_.push_back({.host = &host});
    if (host.is_socket_directory()) targets_.back().address.emplace();
  }
  timer_.arm(executor_.now(), [this] { try_next(); });
}

void Dialler::try_next() {
  target_ = std::move(targets_.front());
  targets_.pop_front();
  // A host that never answers must not take the time of the next ones.
  const TimePoint now = executor_.now();
  share_ends_ = saturating_add(now, (deadline_ - now) / static_cast<std::int64_t>(1 + targets_.size()));
  timer_.arm(share_ends_, [this] { failed({errc::unavailable, endpoint() + ": no connection in time"}); });
  if (target_.address) return dial();
  const Host& host = *target_.host;
  resolution_.emplace(executor_, host.name, host.port, [this, &host](const Result<util::Addresses>& answer) {
    if (!answer.ok()) return failed(answer.failure());
    const util::Addresses& found = answer.value();
    std::for_each(found.rbegin(), found.rend(),
                  [&](const auto& each) { targets_.push_front({.host = &host, .address = each.to_string()}); });
    try_next();
  });
}

void Dialler::dial() {
  Parameters parameters = parameters_for(options_, purpose_, *target_.host, *target_.address);
  if (options_.password_file) {
    Result<std::string> password = options_.password_file->read();
    if (!password.ok()) return failed({errc::unavailable, endpoint() + ": " + password.failure().detail});
    parameters["password"] = std::move(password.value());
  }
  connection_ = start_connecting(parameters);
  PGconn* const connection = connection_.get();
  if (connection == nullptr) return failed({errc::unavailable, endpoint() + ": out of memory"});
  if (PQstatus(connection) == CONNECTION_BAD) return failed(connect_failure(endpoint(), PQerrorMessage(connection)));
  (void)PQsetErrorVerbosity(connection, PQERRORS_VERBOSE);  // for the SQLSTATE
  // libpq would print warnings of the login, about the version of a collation for example.
  (void)PQsetNoticeReceiver(
      connection, [](void*, const PGresult*) {}, nullptr);
  wait(Descriptor::Interest::writable);
}

void Dialler::wait(Descriptor::Interest interest) {
  try {
    descriptor_ = executor_.watch(PQsocket(connection_.get()));
  } catch (const Error& e) {
    return failed({e.code(), endpoint() + ": " + e.detail()});
  }
  descriptor_->async_wait(interest, [this](std::error_code) { poll(); });
}

void Dialler::poll() {
  descriptor_.reset();
  PGconn* const connection = connection_.get();
  if (common::received_bytes(PQsocket(connection)) > common::longest_greeting) {
    return failed(
        {errc::unavailable, endpoint() + ": the server sends data without end, and does not complete the login"});
  }
  LoginState state = state_of(connection);
  switch (PQconnectPoll(connection)) {
    case PGRES_POLLING_READING:
      return wait(Descriptor::Interest::readable);
    case PGRES_POLLING_WRITING:
      return wait(Descriptor::Interest::writable);
    case PGRES_POLLING_OK:
      timer_.disarm();
      (void)PQsetErrorVerbosity(connection, PQERRORS_DEFAULT);
      common::login_accepted(options_.password_file);
      return done_(std::move(connection_));
    case PGRES_POLLING_FAILED:
    case PGRES_POLLING_ACTIVE:
      break;
  }
  state.needs_password = PQconnectionNeedsPassword(connection) == 1;
  failed(connect_failure(endpoint(), PQerrorMessage(connection), state));
}

void Dialler::stop() {
  timer_.disarm();
  resolution_.reset();
  descriptor_.reset();
  connection_.reset();
}

void Dialler::failed(Failure why) {
  stop();
  failures_.push_back(common::login_failed(options_.password_file, std::move(why)));
  if (!targets_.empty() && executor_.now() < deadline_) return try_next();
  done_(common::combined(failures_));
}

}  // namespace dlock::postgres
