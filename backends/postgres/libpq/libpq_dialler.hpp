// Makes a connection to the first of several hosts that will do. Names are resolved off the engine's thread, each
// address gets its share of the time, and libpq is only ever given numeric addresses, so nothing here blocks.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <dlock/spi/executor.hpp>
#include <dlock/spi/result.hpp>

#include "backends/postgres/libpq/libpq_handle.hpp"
#include "backends/postgres/options.hpp"
#include "backends/postgres/sql/connection.hpp"
#include "util/resolver.hpp"

namespace dlock::postgres {

// In tasks only.
class Dialler final {
 public:
  // With a connection that is logged in; or, once no address is left to try, with the reasons. Never called inside
  // start(); may destroy the dialler.
  using Handler = std::function<void(Result<PgHandle>)>;

  Dialler(Executor& executor, const Options& options, const Purpose& purpose, Handler done);

  void start(TimePoint deadline);
  // What is being tried, or was dialled, is of no use: goes on with the next address.
  void failed(Failure why);
  // No connection is wanted any more.
  void stop();
  // Until when the present address has to prove itself.
  [[nodiscard]] TimePoint share_ends() const noexcept { return share_ends_; }
  // Of the host that is being tried, or was dialled.
  [[nodiscard]] std::string endpoint() const { return options_.endpoint_of(*target_.host); }

 private:
  struct Target {
    const Host* host = nullptr;
    std::optional<std::string> address = {};  // none: to be resolved; empty: the host is a socket's directory
  };

  void try_next();
  void dial();
  void wait(Descriptor::Interest interest);
  void poll();

  Executor& executor_;
  const Options& options_;
  const Purpose purpose_;
  const Handler done_;
  TimePoint deadline_;
  TimePoint share_ends_;
  Timer timer_;
  Target target_;  // the one being tried
  std::deque<Target> targets_;
  std::optional<util::Resolution> resolution_;
  PgHandle connection_;
  std::unique_ptr<Descriptor> descriptor_;  // never outlives the socket, which libpq may replace at any step
  std::vector<Failure> failures_;
};

}  // namespace dlock::postgres
