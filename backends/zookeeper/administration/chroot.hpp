// The node that the URL names as the root of everything, made where it is missing. A session that has it as its root
// cannot do that, so this one has the ensemble's.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include <dlock/backend.hpp>
#include <dlock/executor.hpp>
#include <dlock/lifetime.hpp>

#include "backends/zookeeper/connection/session.hpp"
#include "backends/zookeeper/options.hpp"

namespace dlock::zookeeper {

// In tasks only.
class Chroot final : private Session::User {
 public:
  using Handler = Backend::Handler<std::vector<std::string>>;

  // options: of the client.
  Chroot(Executor& executor, Options options, HandleFactory handles);
  ~Chroot();

  // Makes what is missing, plain nodes that stay when they are empty, and answers with them; nothing where the URL has
  // no chroot. Answered within the response timeout.
  void make(Handler done);

 private:
  void session_ready(bool fresh) override;
  void session_alive(TimePoint /*valid_until*/) override {}
  void session_suspended(const Failure& why) override;
  void session_lost(const Failure& why) override;

  void create();
  void created(const Outcome& outcome);
  void finish(std::optional<Failure> why);

  const std::vector<std::string> paths_;  // from the top
  const Options options_;                 // without the chroot
  Executor& executor_;
  std::vector<Handler> waiting_;
  std::vector<std::string> made_;
  std::size_t next_ = 0;
  bool asking_ = false;
  Session session_;
  Timer timer_;
  Lifetime lifetime_;
};

}  // namespace dlock::zookeeper
