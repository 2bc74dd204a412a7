// The node that the URL names as the root of everything, created where it is missing. A session that has it as its root
// cannot do that, so this one has the ensemble's.
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

  // Creates what is missing, plain nodes that stay when they are empty, and answers with them; nothing where the URL
  // has no chroot. Needs rights only where something is missing. Answers within the response timeout.
  void make(Backend::Handler<Names> done);

 private:
  class Making;

  void session_ready(bool /*fresh*/) override { queries_.session_ready(); }
  void session_alive(TimePoint /*valid_until*/) override {}
  void session_suspended(const Failure& why) override;
  void session_lost(const Failure& /*why*/) override {}  // there will be another one, and the deadline judges

  const std::string path_;
  const Options options_;  // without the chroot
  Executor& executor_;
  Session session_;
  Requests requests_;
  Queries queries_;
  Lifetime lifetime_;
};

}  // namespace dlock::zookeeper
