#include "backends/postgres/libpq/libpq_dialler.hpp"

#include <algorithm>
#include <utility>

#include <dlock/duration.hpp>

#include "backends/postgres/libpq/received_bytes.hpp"
#include "backends/postgres/sql/connect_failure.hpp"
#include "backends/postgres/sql/identifier.hpp"
#include "backends/postgres/sql/preamble.hpp"

namespace dlock::postgres {

namespace {

// Names and values, as PQconnectStartParams() takes them. A later value wins.
class Parameters {
 public:
  void set(const std::string& name, std::string value) {
    const auto same = [&](const auto& each) { return each.first == name; };
    (void)std::erase_if(pairs_, same);
    pairs_.emplace_back(name, std::move(value));
  }
  void set(const std::string& name, const std::optional<std::string>& value) {
    if (value) set(name, *value);
  }
  [[nodiscard]] PGconn* connect() const {
    std::vector<const char*> names;
    std::vector<const char*> values;
    for (const auto& [name, value] : pairs_) {
      names.push_back(name.c_str());
      values.push_back(value.c_str());
    }
    names.push_back(nullptr);
    values.push_back(nullptr);
    return PQconnectStartParams(names.data(), values.data(), 0);
  }

 private:
  std::vector<std::pair<std::string, std::string>> pairs_;
};

// Told apart where people look at pg_stat_activity, unless they chose a name themselves.
std::string application_name(const Options& options, const Purpose& purpose) {
  if (!options.application_name.starts_with("dlock:")) return options.application_name;
  const std::string word = " " + purpose.word;
  return as_application_name(options.application_name.substr(0, max_identifier_bytes - word.size()) + word);
}

Parameters parameters_for(const Options& options, const Purpose& purpose, const Host& host,
                          const std::string& hostaddr) {
  Parameters parameters;
  for (const auto& [name, value] : keepalive_parameters(purpose)) parameters.set(name, value);
  // Looks for tickets, who knows how long, unless told not to.
  parameters.set("gssencmode", std::string("disable"));
  for (const auto& [name, value] : options.libpq) parameters.set(name, value);
  parameters.set("host", host.name);  // what a certificate is checked against
  if (!hostaddr.empty()) parameters.set("hostaddr", hostaddr);
  parameters.set("port", std::to_string(host.port));
  parameters.set("user", options.user);
  parameters.set("password", options.password);
  parameters.set("dbname", options.database);
  parameters.set("application_name", application_name(options, purpose));
  parameters.set("client_encoding", std::string("UTF8"));
  parameters.set("connect_timeout", std::string("0"));         // the dialler counts the time
  parameters.set("target_session_attrs", std::string("any"));  // we look for ourselves
  return parameters;
}

// Before libpq goes on, and reads what has come.
LoginState state_of(PGconn* connection) {
  LoginState state;
  switch (PQstatus(connection)) {
    case CONNECTION_SSL_STARTUP:
      state.stage = PQsslInUse(connection) == 1 ? LoginState::Stage::tls_handshake : LoginState::Stage::offering_tls;
      break;
    case CONNECTION_AWAITING_RESPONSE:
      state.stage = LoginState::Stage::login;
      state.encrypted = PQsslInUse(connection) == 1;
      break;
    default:
      return state;
  }
  // In this order, so that an end that comes between the two is seen.
  state.unread = unread_bytes(PQsocket(connection));
  state.hung_up = has_hung_up(PQsocket(connection));
  return state;
}

bool is_final(const Failure& why) {
  return why.code != errc::unavailable;
}

// One for all the hosts: final only if every one of them refused us.
Failure combined(const std::vector<Failure>& failures) {
  Failure all{errc::unavailable, ""};
  const bool hopeless = std::all_of(failures.begin(), failures.end(), is_final);
  if (hopeless) all.code = failures.front().code;
  for (const Failure& each : failures) {
    if (all.detail.find(each.detail) != std::string::npos) continue;  // the same of another address
    all.detail += (all.detail.empty() ? "" : "; ") + each.detail;
  }
  return all;
}

}  // namespace

Dialler::Dialler(Executor& executor, const Options& options, const Purpose& purpose, Events& events)
    : executor_(executor), options_(options), purpose_(purpose), events_(events), timer_(executor) {}

std::string Dialler::endpoint() const {
  return options_.endpoint_of(options_.hosts[host_]);
}

void Dialler::start(TimePoint deadline) {
  deadline_ = deadline;
  try_next_host();
}

// A black hole must not take the time of those that come after it.
void Dialler::take_share(std::size_t addresses) {
  const TimePoint now = executor_.now();
  const std::size_t left = addresses + options_.hosts.size() - next_host_;
  const auto share = (deadline_ - now) / static_cast<std::int64_t>(std::max<std::size_t>(left, 1));
  share_ends_ = saturating_add(now, share);
  timer_.arm(share_ends_, [this] { failed({errc::unavailable, endpoint() + ": no connection in time"}); });
}

void Dialler::try_next_host() {
  host_ = next_host_++;
  addresses_.clear();
  next_address_ = 0;
  take_share(1);
  const Host& host = options_.hosts[host_];
  if (host.is_socket_directory()) {
    addresses_.emplace_back();
    // Not inside a call of start().
    timer_.arm(executor_.now(), [this] { try_next_address(); });
    return;
  }
  resolution_.emplace(executor_, host.name, host.port, [this](Result<std::vector<util::Address>> answer) {
    if (!answer.ok()) return failed(answer.failure());
    for (const util::Address& address : answer.value()) addresses_.push_back(address.to_string());
    try_next_address();
  });
}

void Dialler::try_next_address() {
  const std::string& hostaddr = addresses_[next_address_];
  take_share(addresses_.size() - next_address_);
  ++next_address_;
  if (auto problem = begin(hostaddr)) return failed(*std::move(problem));
  wait(Descriptor::Interest::writable);
}

std::optional<Failure> Dialler::begin(const std::string& hostaddr) {
  Parameters parameters = parameters_for(options_, purpose_, options_.hosts[host_], hostaddr);
  if (options_.password_file) {
    Result<std::string> password = options_.password_file->read();
    if (!password.ok()) return Failure{errc::unavailable, endpoint() + ": " + password.failure().detail};
    parameters.set("password", std::move(password.value()));
  }
  connection_.reset(parameters.connect());
  if (!connection_) return Failure{errc::unavailable, endpoint() + ": out of memory"};
  if (PQstatus(connection_.get()) == CONNECTION_BAD) {
    return connect_failure(endpoint(), PQerrorMessage(connection_.get()));
  }
  (void)PQsetErrorVerbosity(connection_.get(), PQERRORS_VERBOSE);  // for the SQLSTATE
  // A server may send a warning at login, of a collation's version for example. libpq would print it.
  (void)PQsetNoticeReceiver(
      connection_.get(), [](void*, const PGresult*) {}, nullptr);
  return std::nullopt;
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
  if (received_bytes(PQsocket(connection_.get())) > longest_greeting) {
    return failed(
        {errc::unavailable, endpoint() + ": the server sends data without end, and does not complete the login"});
  }
  LoginState state = state_of(connection_.get());
  switch (PQconnectPoll(connection_.get())) {
    case PGRES_POLLING_READING:
      return wait(Descriptor::Interest::readable);
    case PGRES_POLLING_WRITING:
      return wait(Descriptor::Interest::writable);
    case PGRES_POLLING_OK:
      timer_.disarm();
      (void)PQsetErrorVerbosity(connection_.get(), PQERRORS_DEFAULT);
      common::login_accepted(options_.password_file);
      return events_.dialled(std::move(connection_));
    case PGRES_POLLING_FAILED:
    case PGRES_POLLING_ACTIVE:
      break;
  }
  state.needs_password = PQconnectionNeedsPassword(connection_.get()) == 1;
  failed(connect_failure(endpoint(), PQerrorMessage(connection_.get()), state));
}

void Dialler::refuse(Failure why) {
  failed(std::move(why));
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
  const bool in_time = executor_.now() < deadline_;
  if (in_time && next_address_ < addresses_.size()) return try_next_address();
  if (in_time && next_host_ < options_.hosts.size()) return try_next_host();
  events_.dialling_failed(combined(failures_));
}

}  // namespace dlock::postgres
