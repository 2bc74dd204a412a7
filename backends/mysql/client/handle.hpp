// libmariadb's objects, owned.
#pragma once

#include <mysql.h>
#include <openssl/err.h>
#include <signal.h>
#include <sys/socket.h>

#include <ctime>
#include <memory>
#include <optional>

#include "util/unique_fd.hpp"

// Macros of <mysql.h> that would replace functions of others.
#undef list_pop
#undef list_push
#undef list_rest

namespace dlock::mysql {

struct FreeResult {
  void operator()(MYSQL_RES* result) const noexcept { mysql_free_result(result); }
};
using MysqlResult = std::unique_ptr<MYSQL_RES, FreeResult>;

// Around calls of the library that may use TLS. It writes with write(), so a connection that the server has closed
// would end the process: blocks SIGPIPE for the calling thread, and discards the one that was raised meanwhile. OpenSSL
// would take an error that another connection has left to the thread for one of this connection: forgets such errors,
// before and afterwards. For any thread.
class TlsCall {
 public:
  TlsCall() noexcept {
    ERR_clear_error();
    (void)sigemptyset(&signal_);
    (void)sigaddset(&signal_, SIGPIPE);
    (void)pthread_sigmask(SIG_BLOCK, &signal_, &before_);  // fails only for a wrong first argument
  }
  TlsCall(const TlsCall&) = delete;
  TlsCall& operator=(const TlsCall&) = delete;
  ~TlsCall() {
    ERR_clear_error();
    if (sigismember(&before_, SIGPIPE) == 1) return;
    constexpr timespec at_once{};
    (void)sigtimedwait(&signal_, nullptr, &at_once);  // most often there is none
    (void)pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }

 private:
  sigset_t signal_{};
  sigset_t before_{};
};

struct CloseConnection {
  // Without TLS, a thread leaves OpenSSL alone: it allocates for each thread, and a process that ends while this one
  // runs does not free that.
  void operator()(MYSQL* connection) const noexcept {
    std::optional<TlsCall> guard;
    if (connection->options.use_ssl != 0) guard.emplace();
    mysql_close(connection);
  }
};
// No call of the library may be in progress when it is destroyed.
using MysqlHandle = std::unique_ptr<MYSQL, CloseConnection>;

// A query that dlock has given up must not be executed later, so nothing more leaves this machine, and the server gets
// a reset. The library's calls end with an error after that.
inline void cut(int socket) noexcept {
  // If they fail, the connection is closed all the same.
  const linger none{.l_onoff = 1, .l_linger = 0};
  (void)setsockopt(socket, SOL_SOCKET, SO_LINGER, &none, sizeof none);
  (void)shutdown(socket, SHUT_RDWR);
}

}  // namespace dlock::mysql
