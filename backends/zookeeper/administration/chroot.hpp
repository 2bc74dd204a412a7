// The chroot that the URL names, created if it is missing. A session within a chroot cannot create it, so this one has
// none.
#pragma once

#include <string>
#include <vector>

#include <dlock/spi/backend.hpp>
#include <dlock/spi/executor.hpp>
#include <dlock/spi/lifetime.hpp>

#include "backends/zookeeper/administration/queries.hpp"
#include "backends/zookeeper/connection/session.hpp"
#include "backends/zookeeper/nodes/requests.hpp"
#include "backends/zookeeper/options.hpp"

namespace dlock::zookeeper {

// In tasks only.
class Chroot final : private Session::User {
 public:
  using Names = std::vector<std::string>;

  // options: of the client.
  Chroot(Executor& executor, Options options, HandleFactory handles);
  ~Chroot();

  // Creates what is missing, as plain nodes, which stay when they are empty, and answers with them; with nothing if the
  // URL has no chroot. Needs rights only if something is missing. Answers within the response timeout.
  void make(Backend::Handler<Names> done);

 private:
  class Making;

  void session_ready(bool /*fresh*/) override { queries_.session_ready(); }
  void session_alive(TimePoint /*valid_until*/) override {}
  void session_suspended(const Failure& why) override;
  void session_lost(const Failure& /*why*/) override {}  // the session is replaced, and the deadline decides

  const std::string path_;
  const Options options_;  // without the chroot
  Executor& executor_;
  Session session_;
  Requests requests_;
  Queries queries_;
  Lifetime lifetime_;
};

}  // namespace dlock::zookeeper
