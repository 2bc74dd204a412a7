// Connects to the first of several hosts that accepts and is of use. A thread of its own does it, because the library
// resolves names and shakes hands over TLS in its calls. Nothing waits for that thread: where its connection is no
// longer wanted, it closes what it has, and ends.
#pragma once

#include <functional>
#include <memory>

#include <dlock/spi/executor.hpp>
#include <dlock/spi/result.hpp>

#include "backends/common/sql/connection.hpp"
#include "backends/mysql/client/handle.hpp"
#include "backends/mysql/options.hpp"
#include "util/unique_fd.hpp"

namespace dlock::mysql {

// A session with its settings.
struct Session {
  MysqlHandle connection;
  util::UniqueFd socket;  // a duplicate of the library's, which the library closes when it likes; non-blocking
  sql::ServerInfo server;
};

// In tasks only.
class Dialler {
 public:
  // Gets a session or, once no host is left, the reasons. Called once, never inside start(), at the latest at the
  // deadline; may destroy the dialler.
  using Handler = std::function<void(Result<Session>)>;

  // The options outlive it.
  Dialler(Executor& executor, const Options& options, const sql::Purpose& purpose, Handler done);
  Dialler(const Dialler&) = delete;
  Dialler& operator=(const Dialler&) = delete;
  ~Dialler() { stop(); }

  void start(TimePoint deadline);
  // The handler is not called any more.
  void stop();

 private:
  class Attempt;

  void finish(Result<Session> result);

  Executor& executor_;
  const Options& options_;
  const sql::Purpose purpose_;
  const Handler done_;
  std::shared_ptr<Attempt> attempt_;  // shared with its thread
  Timer timer_;
};

}  // namespace dlock::mysql
