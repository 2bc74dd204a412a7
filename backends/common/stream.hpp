// A TCP connection as bytes, with optional TLS: for protocols that dlock implements itself.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include <dlock/spi/executor.hpp>
#include <dlock/spi/lifetime.hpp>

#include "backends/common/port_probe.hpp"
#include "backends/common/send_buffer.hpp"
#include "backends/common/tcp_dial.hpp"
#include "backends/common/tls.hpp"
#include "util/unique_fd.hpp"

namespace dlock::common {

// The other side of a stream. The pointers must outlive the stream.
struct Peer {
  std::string host;
  std::uint16_t port = 0;
  std::string name;                 // in front of each message
  const TlsContext* tls = nullptr;  // nullptr: none
  PeerHint* hint = nullptr;         // shared by the streams of a client; nullptr: none
  TlsProbing* probing = nullptr;    // finds out whether TLS explains a silent port; nullptr: does not
};

// In tasks only. Destroying it closes the connection; nothing is reported from then on. TcpStream is the real one;
// tests have one with a scripted server at the other end.
class Stream {
 public:
  // Any of these may destroy the stream.
  class Events {
   public:
    Events() = default;
    Events(const Events&) = delete;
    Events& operator=(const Events&) = delete;
    virtual void opened() = 0;
    virtual void received(std::string_view bytes) = 0;
    // All bytes that had arrived were passed to received().
    virtual void drained() = 0;
    // The connection could not be made, or has ended; orderly: the other side closed it. Nothing follows.
    virtual void closed(Failure why, bool orderly) = 0;

   protected:
    ~Events() = default;
  };

  Stream() = default;
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;
  virtual ~Stream() = default;

  // Starts connecting; opened() or closed() follows, never inside the call. The caller enforces the deadline: here it
  // only divides the time between several addresses.
  virtual void open(TimePoint deadline) = 0;
  // Appends bytes to send. Only once the stream is open.
  virtual void write(std::string_view bytes) = 0;
  // Sends what the network takes now; the rest follows by itself. Reports nothing inside the call.
  virtual void flush() = 0;
  // Reads what has arrived, without waiting for the next turn of the engine. May call any event.
  virtual void receive() = 0;
  // From now on, closing discards the bytes that the network has not taken, instead of sending them later.
  virtual void discard() noexcept = 0;
  // The server at this address is the wrong one: new streams with this hint try the other addresses of the host first.
  // Returns how many addresses the host has.
  virtual std::size_t refuse_peer() { return 1; }
  // Connected, and the server has not said anything in the TLS handshake yet, because it does not use TLS.
  [[nodiscard]] virtual bool tls_unanswered() const noexcept { return false; }
  // How many of the bytes written may have reached the other side.
  [[nodiscard]] virtual std::uint64_t sent() const noexcept = 0;
  // Of the other side, for messages.
  [[nodiscard]] virtual std::string peer_name() const = 0;
};

class TcpStream final : public Stream {
 public:
  TcpStream(Executor& executor, Peer peer, Events& events);
  ~TcpStream() override;

  void open(TimePoint deadline) override;
  void write(std::string_view bytes) override;
  void flush() override;
  void receive() override;
  void discard() noexcept override { discard_ = true; }
  std::size_t refuse_peer() override;
  [[nodiscard]] bool tls_unanswered() const noexcept override {
    return open_ && filter_ != nullptr && !heard_ && explained_;
  }
  [[nodiscard]] std::uint64_t sent() const noexcept override { return sent_; }
  [[nodiscard]] std::string peer_name() const override { return peer_.name; }
  // How many of the bytes written the network has not taken.
  [[nodiscard]] std::size_t pending() const noexcept { return plain_.size() + output_.size(); }

 private:
  void connected(Result<TcpDial::Connected> result);
  void continue_handshake();
  void wait_readable();
  void wait_writable();
  [[nodiscard]] bool take(std::string_view network);
  [[nodiscard]] bool deliver(std::string_view plain);
  void send_output();
  void close(Failure why, bool orderly = false);
  void explain_silence(const std::function<void()>& then);
  void close_later(Failure why);
  [[nodiscard]] Failure broken(const std::string& why) const;
  [[nodiscard]] Failure tls_failure() const;

  Executor& executor_;
  const Peer peer_;
  Events& events_;
  std::optional<TcpDial> dial_;

  std::shared_ptr<const util::Address> address_;
  util::UniqueFd socket_;
  std::unique_ptr<Descriptor> descriptor_;  // destroyed before the socket is closed
  std::unique_ptr<TlsFilter> filter_;
  bool open_ = false;
  bool heard_ = false;    // bytes arrived from the network
  bool secured_ = false;  // the TLS handshake is complete
  bool discard_ = false;
  bool explained_ = false;  // nothing arrived, because only one side uses TLS
  bool waiting_writable_ = false;

  std::string plain_;          // with TLS: written, not yet encrypted
  SendBuffer output_;          // for the network
  std::uint64_t written_ = 0;  // plain bytes that are in output_ or gone
  std::uint64_t sent_ = 0;
  Timer silence_timer_;
  std::optional<PortProbe> probe_;
  Lifetime lifetime_;
};

}  // namespace dlock::common
