// libpq's objects, owned.
#pragma once

#include <libpq-fe.h>
#include <sys/socket.h>

#include <memory>

namespace dlock::postgres {

struct ClearResult {
  void operator()(PGresult* result) const noexcept { PQclear(result); }
};
using PgResult = std::unique_ptr<PGresult, ClearResult>;

// PQfinish() would send the rest of its bytes. A query that dlock has given up must not be executed later, so if
// queries are in flight, nothing more leaves this machine, and the server gets a reset.
struct FinishConnection {
  bool abandon = false;

  void operator()(PGconn* connection) const noexcept {
    const int fd = PQsocket(connection);
    if (abandon && fd >= 0) {
      // If they fail, the connection is closed all the same.
      const linger none{.l_onoff = 1, .l_linger = 0};
      (void)setsockopt(fd, SOL_SOCKET, SO_LINGER, &none, sizeof none);
      (void)shutdown(fd, SHUT_RDWR);
    }
    PQfinish(connection);
  }
};
using PgHandle = std::unique_ptr<PGconn, FinishConnection>;

}  // namespace dlock::postgres
