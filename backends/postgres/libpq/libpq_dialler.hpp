// Connects to the first of several hosts that accepts. A resolver thread looks up the names, each address has its share
// of the time, and libpq gets numeric addresses only, so nothing here blocks.
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
#include "backends/postgres/sql/common.hpp"
#include "util/resolver.hpp"

namespace dlock::postgres {

// In tasks only.
class Dialler final {
 public:
  // Gets a connection that is logged in or, once no address is left, the reasons. Never called inside start(); may
  // destroy the dialler.
  using Handler = std::function<void(Result<PgHandle>)>;

  Dialler(Executor& executor, const Options& options, const Purpose& purpose, Handler done);

  void start(TimePoint deadline);
  // The present address is of no use: tries the next one.
  void failed(Failure why);
  void stop();
  // The deadline of the present address.
  [[nodiscard]] TimePoint share_ends() const noexcept { return share_ends_; }
  // The host of the present address.
  [[nodiscard]] std::string endpoint() const { return options_.endpoint_of(*target_.host); }

 private:
  struct Target {
    const Host* host = nullptr;
    std::optional<std::string> address = {};  // nullopt: not resolved yet; empty: the host is a socket's directory
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
  Target target_;  // the present one
  std::deque<Target> targets_;
  std::optional<util::Resolution> resolution_;
  PgHandle connection_;
  std::unique_ptr<Descriptor> descriptor_;  // never outlives the socket, which libpq may replace at any step
  std::vector<Failure> failures_;
};

}  // namespace dlock::postgres
