// Makes a connection to the first of several hosts that will do. Names are resolved off the engine's thread, each
// address gets its share of the time, and libpq is only ever given numeric addresses, so nothing here blocks.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include <dlock/spi/executor.hpp>

#include "backends/postgres/libpq/libpq_handle.hpp"
#include "backends/postgres/options.hpp"
#include "backends/postgres/sql/connection.hpp"
#include "util/resolver.hpp"

namespace dlock::postgres {

// In tasks only.
class Dialler final {
 public:
  // None is called inside a call to the dialler but refuse(); each may destroy it.
  class Events {
   public:
    Events() = default;
    Events(const Events&) = delete;
    Events& operator=(const Events&) = delete;
    // Logged in.
    virtual void dialled(PgHandle connection) = 0;
    // There is no host left to try.
    virtual void dialling_failed(const Failure& why) = 0;

   protected:
    ~Events() = default;
  };

  Dialler(Executor& executor, const Options& options, const Purpose& purpose, Events& events);

  void start(TimePoint deadline);
  // What was dialled is of no use: goes on with the next.
  void refuse(Failure why);
  // No connection is wanted any more.
  void stop();
  // Until when the present address has to prove itself.
  [[nodiscard]] TimePoint share_ends() const noexcept { return share_ends_; }
  // Of the host that is being tried, or was dialled.
  [[nodiscard]] std::string endpoint() const;

 private:
  void try_next_host();
  void try_next_address();
  void take_share(std::size_t addresses);
  [[nodiscard]] std::optional<Failure> begin(const std::string& hostaddr);
  void poll();
  void wait(Descriptor::Interest interest);
  void failed(Failure why);

  Executor& executor_;
  const Options& options_;
  const Purpose purpose_;
  Events& events_;
  TimePoint deadline_;
  TimePoint share_ends_;
  Timer timer_;

  std::size_t host_ = 0;       // the one being tried
  std::size_t next_host_ = 0;  // after it
  std::optional<util::Resolution> resolution_;
  std::vector<std::string> addresses_;  // of the host; an empty one stands for a socket's directory
  std::size_t next_address_ = 0;
  PgHandle connection_;
  std::unique_ptr<Descriptor> descriptor_;  // never outlives the socket, which libpq may replace at any step
  std::vector<Failure> failures_;
};

}  // namespace dlock::postgres
