#include "backends/mysql/client/dialler.hpp"

#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <limits>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include <dlock/duration.hpp>

#include "backends/common/received_bytes.hpp"
#include "backends/common/reconnect.hpp"
#include "backends/common/sql/probing.hpp"
#include "backends/mysql/client/exchange.hpp"
#include "backends/mysql/client/preamble.hpp"
#include "backends/mysql/errors.hpp"
#include "util/mutex.hpp"
#include "util/signals_blocked.hpp"

namespace dlock::mysql {

using std::chrono::milliseconds;
using std::chrono::nanoseconds;
using std::chrono::seconds;

namespace {

// The library would send the password itself where the server requests that ("mysql_clear_password", "dialog").
constexpr const char* plugins_without_clear_text =
    "mysql_native_password,caching_sha2_password,sha256_password,client_ed25519,parsec,auth_gssapi_client";

const char* text_of(const std::optional<std::string>& text) {
  return text ? text->c_str() : nullptr;
}

// The options are known to the library, and copied by it, so these calls do not fail.
void configure(MYSQL* connection, const Options& options, const sql::Purpose& purpose, nanoseconds patience) {
  const auto set = [&](mysql_option option, const void* value) { (void)mysql_options(connection, option, value); };
  const auto set_number = [&](mysql_option option, unsigned number) { set(option, &number); };
  const auto set_flag = [&](mysql_option option, my_bool flag) { set(option, &flag); };
  set(MYSQL_OPT_NONBLOCK, nullptr);
  set_number(MYSQL_OPT_PROTOCOL, MYSQL_PROTOCOL_TCP);  // "localhost" would be a Unix socket
  // For steps without a deadline of the dialler: each step of resolving a name, and of a handshake over TLS.
  set_number(MYSQL_OPT_CONNECT_TIMEOUT,
             static_cast<unsigned>(std::max(std::chrono::ceil<seconds>(patience), seconds(1)).count()));
  constexpr std::size_t longest_packet = common::longest_answer;
  set(MYSQL_OPT_MAX_ALLOWED_PACKET, &longest_packet);
  set_number(MYSQL_OPT_LOCAL_INFILE, 0);  // a server could request any file
  set(MYSQL_SET_CHARSET_NAME, "utf8mb4");
  const std::string name = "dlock:" + options.holder + " " + purpose.word;
  (void)mysql_options4(connection, MYSQL_OPT_CONNECT_ATTR_ADD, "program_name", name.c_str());
  if (options.tls != Tls::verify) set(MARIADB_OPT_RESTRICTED_AUTH, plugins_without_clear_text);
  set_flag(MYSQL_OPT_SSL_ENFORCE, options.tls != Tls::off ? 1 : 0);
  set_flag(MYSQL_OPT_SSL_VERIFY_SERVER_CERT, options.tls == Tls::verify ? 1 : 0);
  if (options.tls == Tls::off) return;
  set(MARIADB_OPT_TLS_VERSION, "TLSv1.2,TLSv1.3");
  for (const auto& [option, file] : {std::pair{MYSQL_OPT_SSL_CA, &options.tls_files.ca_file},
                                     std::pair{MYSQL_OPT_SSL_CERT, &options.tls_files.cert_file},
                                     std::pair{MYSQL_OPT_SSL_KEY, &options.tls_files.key_file}}) {
    if (!file->empty()) set(option, file->c_str());
  }
}

// A wait in the server sends nothing, so only this finds out that its connection is dead. A system that refuses one of
// these options still works.
void probe(int socket, const sql::Purpose& purpose) noexcept {
  const sql::Probing probing = sql::probing_for(purpose.session_lease);
  const auto set = [socket](int level, int option, std::int64_t value) {
    const int number = static_cast<int>(std::min<std::int64_t>(value, std::numeric_limits<int>::max()));
    (void)setsockopt(socket, level, option, &number, sizeof number);
  };
  set(SOL_SOCKET, SO_KEEPALIVE, 1);
  set(IPPROTO_TCP, TCP_KEEPIDLE, probing.idle.count());
  set(IPPROTO_TCP, TCP_KEEPINTVL, probing.interval.count());
  set(IPPROTO_TCP, TCP_KEEPCNT, probing.count);
  set(IPPROTO_TCP, TCP_USER_TIMEOUT, probing.unacknowledged.count());
}

}  // namespace

// --- On the thread ---------------------------------------------------------------------------------------------------

class Dialler::Attempt : public std::enable_shared_from_this<Attempt> {
 public:
  Attempt(Executor& executor, Dialler& dialler, std::optional<std::string> password, TimePoint deadline)
      : options_(dialler.options_),
        purpose_(dialler.purpose_),
        password_(std::move(password)),
        deadline_(deadline),
        dialler_(&dialler),
        executor_(&executor) {}

  void run() {
    std::vector<Failure> failures;
    for (std::size_t left = options_.hosts.size(); left > 0; --left) {
      const Host& host = options_.hosts[options_.hosts.size() - left];
      const auto patience = time_until(deadline_);
      if (!patience) return;
      // A host that never answers must not take the time of the next ones.
      auto result = connect(host, *patience / static_cast<std::int64_t>(left));
      if (result.ok()) return report(std::move(result));
      failures.push_back(result.failure());
    }
    report(common::combined(failures));
  }

  // In a task.
  void abandon() {
    dialler_ = nullptr;
    const util::MutexLock lock(mutex_);
    executor_ = nullptr;
    if (abandoned_) (void)::eventfd_write(abandoned_.get(), 1);  // fails only after 2^64 of them
  }

 private:
  // nullopt: abandoned.
  [[nodiscard]] std::optional<nanoseconds> time_until(TimePoint time) {
    const util::MutexLock lock(mutex_);
    if (executor_ == nullptr) return std::nullopt;
    return time - executor_->now();
  }

  void report(Result<Session> result) {
    const util::MutexLock lock(mutex_);
    if (executor_ == nullptr) return;
    executor_->post([self = shared_from_this(), result = std::make_shared<Result<Session>>(std::move(result))] {
      if (self->dialler_ != nullptr) self->dialler_->finish(std::move(*result));
    });
  }

  // Empty: the socket is ready, or the library is to find out what is wrong with it.
  [[nodiscard]] std::string wait(int socket, int events, TimePoint until) {
    const int wanted =
        ((events & MYSQL_WAIT_READ) != 0 ? POLLIN : 0) | ((events & MYSQL_WAIT_WRITE) != 0 ? POLLOUT : 0);
    std::array<pollfd, 2> sources{pollfd{.fd = socket, .events = static_cast<short>(wanted), .revents = 0},
                                  pollfd{.fd = abandoned_.get(), .events = POLLIN, .revents = 0}};
    for (;;) {
      const auto left = time_until(until);
      if (!left || *left <= nanoseconds(0)) return "no connection in time";
      const auto limit = std::min<nanoseconds>(*left, std::chrono::hours(1));
      (void)::poll(sources.data(), sources.size(), static_cast<int>(std::chrono::ceil<milliseconds>(limit).count()));
      if (sources[0].revents != 0) break;
    }
    if (common::received_bytes(socket) <= common::longest_greeting) return {};
    return "the server sends data without end, and does not complete the login";
  }

  // Continues a call of the library until it ends. The answer says why it was cut off.
  template <class Resume>
  [[nodiscard]] std::string complete(MYSQL* connection, int events, TimePoint until, Resume resume) {
    std::string why;
    while (events != 0) {
      const int socket = mysql_get_socket(connection);
      if (why.empty()) why = wait(socket, events, until);
      if (!why.empty()) cut(socket);
      events = resume(why.empty() ? events & ~MYSQL_WAIT_TIMEOUT : MYSQL_WAIT_TIMEOUT);
    }
    return why;
  }

  [[nodiscard]] Result<Session> connect(const Host& host, nanoseconds patience) {
    const std::string endpoint = options_.endpoint_of(host);
    const auto unavailable = [&](const std::string& why) { return Failure{errc::unavailable, endpoint + ": " + why}; };
    // The library's message would not name the file.
    const common::TlsOptions& files = options_.tls_files;
    for (const std::string& file : {files.ca_file, files.cert_file, files.key_file}) {
      if (file.empty() || ::access(file.c_str(), R_OK) == 0) continue;
      return Failure{errc::access_denied, endpoint + ": " + file + ": " + std::generic_category().message(errno)};
    }
    Session session;
    session.connection.reset(mysql_init(nullptr));
    MYSQL* const connection = session.connection.get();
    if (connection == nullptr) return unavailable("the client library could not start");
    configure(connection, options_, purpose_, patience);
    const auto now = time_until(deadline_);
    if (!now) return unavailable("no longer wanted");
    const TimePoint until = deadline_ - *now + patience;

    MYSQL* connected = nullptr;
    const int events =
        mysql_real_connect_start(&connected, connection, host.name.c_str(), text_of(options_.user), text_of(password_),
                                 text_of(options_.database), host.port, nullptr, CLIENT_MULTI_STATEMENTS);
    const std::string late = complete(connection, events, until, [&](int occurred) {
      return mysql_real_connect_cont(&connected, connection, occurred);
    });
    if (!late.empty()) return unavailable(late);
    if (connected == nullptr) return connect_failure(endpoint, mysql_errno(connection), mysql_error(connection));

    // The library insists on TLS only where it verifies the server.
    if (options_.tls != Tls::off && mysql_get_ssl_cipher(connection) == nullptr) {
      return Failure{errc::access_denied, endpoint + ": TLS is required, but the server does not support it"};
    }

    const int socket = mysql_get_socket(connection);
    session.socket = util::UniqueFd(::fcntl(socket, F_DUPFD_CLOEXEC, 0));
    if (!session.socket) return unavailable("no descriptor is left");
    // OpenSSL reads from the socket itself. These calls do not fail for a socket.
    (void)::fcntl(socket, F_SETFD, FD_CLOEXEC);
    (void)::fcntl(socket, F_SETFL, ::fcntl(socket, F_GETFL) | O_NONBLOCK);
    probe(socket, purpose_);
    return greet(std::move(session), endpoint, until);
  }

  [[nodiscard]] Result<Session> greet(Session session, const std::string& endpoint, TimePoint until) {
    MYSQL* const connection = session.connection.get();
    Exchange exchange(*connection);
    const auto ask = [&](const std::string& text, std::size_t statements) {
      const std::string late = complete(connection, exchange.start(text, statements), until,
                                        [&](int events) { return exchange.resume(events); });
      return late.empty() ? connect_failure(endpoint, exchange.error(), exchange.error_text())
                          : Failure{errc::unavailable, endpoint + ": " + late};
    };
    const Failure why_no_answer = ask(question(), answers_to_question);
    if (exchange.error() != 0) return why_no_answer;
    auto server = read_answer(exchange.results(),
                              {.version = static_cast<int>(mysql_get_server_version(connection)),
                               .thread_id = mysql_thread_id(connection),
                               .endpoint = endpoint,
                               .encrypted = mysql_get_ssl_cipher(connection) != nullptr},
                              options_.pooler);
    if (!server.ok()) return server.failure();
    session.server = std::move(server.value());
    if (session.server.pooled) return session;
    const Failure why_not_set = ask(settings_for(purpose_, session.server.version), settings);
    if (exchange.results().size() + 1 < settings || is_of_library(exchange.error())) return why_not_set;
    session.server.ends_silent_sessions = purpose_.session_lease > nanoseconds(0);
    return session;
  }

  const Options options_;  // a copy: the thread may outlive the client
  const sql::Purpose purpose_;
  const std::optional<std::string> password_;
  const TimePoint deadline_;
  const util::UniqueFd abandoned_{::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};  // without it, the deadline ends a wait
  Dialler* dialler_;                                                          // in tasks only; nullptr: abandoned
  util::Mutex mutex_;
  Executor* executor_ DLOCK_GUARDED_BY(mutex_);  // nullptr: abandoned
};

// --- In tasks --------------------------------------------------------------------------------------------------------

Dialler::Dialler(Executor& executor, const Options& options, const sql::Purpose& purpose, Handler done)
    : executor_(executor), options_(options), purpose_(purpose), done_(std::move(done)), timer_(executor) {}

void Dialler::start(TimePoint deadline) {
  const auto fail_with = [this](const Failure& why, TimePoint at) { timer_.arm(at, [this, why] { finish(why); }); };
  const auto fail_soon = [&](const std::string& why) {
    fail_with({errc::unavailable, options_.endpoint() + ": " + why}, executor_.now());
  };
  std::optional<std::string> password = options_.password;
  if (options_.password_file) {
    auto read = options_.password_file->read();
    if (!read.ok()) return fail_soon(read.failure().detail);
    password = std::move(read.value());
  }
  // Not on the threads that connect: it is not thread-safe, and if the process ended during a connect, nothing would
  // free what OpenSSL allocates for the thread.
  static const int initialised = mysql_library_init(0, nullptr, nullptr);
  if (initialised != 0) return fail_soon("the client library could not start");
  attempt_ = std::make_shared<Attempt>(executor_, *this, std::move(password), deadline);
  const util::SignalsBlocked signals;
  try {
    std::thread([attempt = attempt_] { attempt->run(); }).detach();
  } catch (const std::system_error&) {
    return fail_soon("the system has no thread left");
  }
  fail_with({errc::unavailable, options_.endpoint() + ": no connection in time"}, deadline);
}

void Dialler::finish(Result<Session> result) {
  stop();
  if (!result.ok()) return done_(common::login_failed(options_.password_file, result.failure()));
  common::login_accepted(options_.password_file);
  done_(std::move(result));
}

void Dialler::stop() {
  timer_.disarm();
  if (const auto attempt = std::exchange(attempt_, nullptr)) attempt->abandon();
}

}  // namespace dlock::mysql
