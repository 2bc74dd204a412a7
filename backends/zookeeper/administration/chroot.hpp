// The node that the URL names as the root of everything, made where it is missing. A session that has it as its root
// cannot do that, so this one has the ensemble's.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <dlock/spi/backend.hpp>
#include <dlock/spi/backoff.hpp>
#include <dlock/spi/executor.hpp>
#include <dlock/spi/lifetime.hpp>

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
  // no chroot. Needs rights only where something is missing. Answered within the response timeout.
  void make(Handler done);

 private:
  void session_ready(bool fresh) override;
  void session_alive(TimePoint /*valid_until*/) override {}
  void session_suspended(const Failure& why) override;
  void session_lost(const Failure& /*why*/) override {}  // there will be another one, and the deadline judges

  void create();
  void created(const Outcome& outcome);
  void query(const Failure& why);
  void there(bool by_us);
  void again_later(const Failure& why);
  void finish(std::optional<Failure> why);

  const std::string path_;
  const Options options_;  // without the chroot
  Executor& executor_;
  std::vector<Handler> waiting_;
  std::vector<std::string> missing_;  // the one to be made next is last
  std::vector<std::string> made_;     // from the top
  Failure problem_;                   // the last
  bool unsure_ = false;               // the one to be made next may have been made by us
  std::uint64_t round_ = 0;           // answers to what was asked in an earlier one are of no interest
  Session session_;
  Backoff backoff_{std::chrono::milliseconds(500)};
  Timer pause_;
  Timer deadline_;
  Lifetime lifetime_;
};

}  // namespace dlock::zookeeper
