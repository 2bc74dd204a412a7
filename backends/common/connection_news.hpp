// Reports to the observer of a client about its connections.
#pragma once

#include <cstddef>
#include <vector>

#include <dlock/spi/backend.hpp>

namespace dlock::common {

// The receiver of news about a connection. In tasks only.
class ConnectionObserver {
 public:
  ConnectionObserver() = default;
  ConnectionObserver(const ConnectionObserver&) = delete;
  ConnectionObserver& operator=(const ConnectionObserver&) = delete;
  // The connection was made; no request about locks was answered on it yet.
  virtual void opened() {}
  // A request about locks was answered on it.
  virtual void connected() = 0;
  // It broke, or could not be made.
  virtual void broken(const Failure& why) = 0;

 protected:
  ~ConnectionObserver() = default;
};

// Reports several connections as one, which is connected if one was answered and none is broken. A connection that
// breaks again before it was answered is reported only if the reason is new. In tasks only.
class ConnectionNews {
 public:
  // told: false: reports nothing to the host.
  explicit ConnectionNews(BackendHost& host, bool told = true) : host_(host), told_(told) {}

  // One of the connections. The ConnectionNews outlives it.
  class Source final : public ConnectionObserver {
   public:
    explicit Source(ConnectionNews& news) : news_(news) {}
    void connected() override;
    void broken(const Failure& why) override;
    // The connection is no longer needed, so it no longer counts as broken.
    void not_needed() {
      if (!reasons_.empty()) connected();
    }

   private:
    ConnectionNews& news_;
    std::vector<Failure> reasons_;  // different ones, since it broke
  };

 private:
  void tell(ConnectionEvent event);

  BackendHost& host_;
  const bool told_;
  std::size_t broken_ = 0;
  bool connected_ = false;
};

}  // namespace dlock::common
