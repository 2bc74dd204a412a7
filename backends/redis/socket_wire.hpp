// The real Wire: a non-blocking TCP connection, with TLS where asked for.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <dlock/executor.hpp>
#include <dlock/lifetime.hpp>

#include "backends/redis/options.hpp"
#include "backends/redis/reply.hpp"
#include "backends/redis/tls.hpp"
#include "backends/redis/wire.hpp"
#include "util/resolver.hpp"
#include "util/unique_fd.hpp"

namespace dlock::redis {

class SocketWire final : public Wire {
 public:
  SocketWire(Executor& executor, const Options& options, const TlsContext* tls, Events& events);
  ~SocketWire() override;

  void open(TimePoint deadline) override;
  void write(std::string_view bytes) override;
  void flush() override;
  void receive() override;
  void discard() noexcept override { discard_ = true; }
  [[nodiscard]] std::uint64_t sent() const noexcept override { return sent_; }

 private:
  // Connecting
  void resolved(Result<std::vector<util::Address>> answer);
  void try_next_address();
  [[nodiscard]] std::optional<Failure> start_connecting(const util::Address& address);
  void connected();
  void address_failed(Failure why);
  void set_options() const noexcept;
  void continue_handshake();
  // Connected
  void wait_readable();
  void wait_writable();
  [[nodiscard]] bool take(std::string_view network);
  [[nodiscard]] bool deliver(std::string_view plain);
  void send_output();
  void close(Failure why);
  void close_later(Failure why);
  [[nodiscard]] Failure broken(const std::string& why) const;

  Executor& executor_;
  const Options& options_;
  const TlsContext* const tls_;
  Events& events_;

  std::optional<util::Resolution> resolution_;
  std::vector<util::Address> addresses_;
  std::size_t next_address_ = 0;
  TimePoint deadline_;
  Timer timer_;  // of the address being tried

  util::UniqueFd socket_;
  std::unique_ptr<Descriptor> descriptor_;  // destroyed before the socket is closed
  std::unique_ptr<TlsFilter> filter_;
  ReplyReader reader_;
  bool open_ = false;
  bool secured_ = false;  // the TLS handshake is over
  bool discard_ = false;
  bool waiting_writable_ = false;

  std::string plain_;   // with TLS: written, not yet encrypted
  std::string output_;  // for the network
  std::size_t output_done_ = 0;
  std::uint64_t written_ = 0;  // plain bytes that are in output_ or gone
  std::uint64_t sent_ = 0;
  Lifetime lifetime_;
};

// tls: nullptr for none.
[[nodiscard]] WireFactory socket_wires(std::shared_ptr<const TlsContext> tls);

}  // namespace dlock::redis
