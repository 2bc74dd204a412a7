// Connects to the first address of a host that answers.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <dlock/error.hpp>
#include <dlock/spi/executor.hpp>
#include <dlock/spi/lifetime.hpp>
#include <dlock/spi/result.hpp>

#include "util/resolver.hpp"
#include "util/unique_fd.hpp"

namespace dlock::common {

// The address of a client's open connections: the next one tries it first, so that all of them reach the same server
// although its name has several addresses.
struct PeerHint {
  std::weak_ptr<const util::Address> peer;
  std::vector<util::Address> refused;  // tried after all others; the latest last

  void refuse(const util::Address& address);
};

// One attempt. Destroying it ends it. In tasks only.
class TcpDial {
 public:
  struct Connected {
    util::UniqueFd socket;  // non-blocking, with TCP_NODELAY and keep-alive
    std::shared_ptr<const util::Address> peer;
  };
  using Handler = std::function<void(Result<Connected>)>;

  // Calls done once, later, as a task; it may destroy the attempt. Each address gets its share of the time until the
  // deadline; the caller enforces that. hint: nullptr for none; outlives the attempt.
  TcpDial(Executor& executor, const std::string& host, std::uint16_t port, TimePoint deadline, PeerHint* hint,
          Handler done);
  // As above, with known addresses: at least one.
  TcpDial(Executor& executor, std::vector<util::Address> addresses, TimePoint deadline, PeerHint* hint, Handler done);
  TcpDial(const TcpDial&) = delete;
  TcpDial& operator=(const TcpDial&) = delete;
  ~TcpDial();

  // How many the host has, once it is resolved.
  [[nodiscard]] std::size_t addresses() const noexcept { return addresses_.size(); }

 private:
  TcpDial(Executor& executor, TimePoint deadline, PeerHint* hint, Handler done);
  void resolved(Result<std::vector<util::Address>> answer);
  void try_next_address();
  [[nodiscard]] std::optional<std::string> start_connecting(const util::Address& address);
  void writable();
  void failed(std::string why);
  void finish(Result<Connected> result);

  Executor& executor_;
  const TimePoint deadline_;
  PeerHint* const hint_;
  Handler done_;
  std::vector<util::Address> addresses_;
  std::size_t next_address_ = 0;
  util::UniqueFd socket_;
  std::unique_ptr<Descriptor> descriptor_;  // destroyed before the socket is closed
  Timer timer_;                             // of the address being tried
  std::optional<util::Resolution> resolution_;
  Lifetime lifetime_;
};

// The system's text for an error number.
[[nodiscard]] std::string describe_errno(int error);

}  // namespace dlock::common
