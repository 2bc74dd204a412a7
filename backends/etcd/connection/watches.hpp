// Watches of the client, all of them in one stream.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string_view>
#include <unordered_map>

#include <dlock/spi/executor.hpp>
#include <dlock/spi/lifetime.hpp>

#include "backends/etcd/connection/client.hpp"
#include "backends/etcd/wire/messages.hpp"

namespace dlock::etcd {

// In tasks only.
class Watches final : private Client::Stream {
 public:
  enum class News {
    standing,  // the watch is in effect: what happens behind the revision is told
    event,     // a key of the range went, or was put if that was asked for
    over,      // the stream broke, or etcd has compacted the history: look, and watch again
  };
  // The revision: of the cluster, when it was told.
  using Handler = std::function<void(News, std::int64_t revision)>;

  // A watch; ends with its destruction.
  class Interest {
   public:
    Interest(Watches& watches, std::int64_t id) noexcept : watches_(watches), id_(id) {}
    Interest(const Interest&) = delete;
    Interest& operator=(const Interest&) = delete;
    ~Interest() { watches_.forget(id_); }

   private:
    Watches& watches_;
    const std::int64_t id_;
  };

  explicit Watches(Client& client);
  ~Watches();

  // The client's connection stands, or is gone.
  void client_ready();
  void client_down();

  // What happens in the range from now on; what happened before the watch stood is to be looked at. A watch may also
  // begin in the past, but the past is read for all watches together, ten times a second, and until then nothing is
  // told. Never tells inside the call.
  [[nodiscard]] std::unique_ptr<Interest> watch(const KeyRange& range, bool puts, Handler tell);

 private:
  struct Entry {
    Handler tell;
    bool at_server = false;
  };

  void forget(std::int64_t id);
  void stream_said(std::string_view message) override;
  void stream_ended(const GrpcStatus& status) override;
  void tell(std::int64_t id, News news, std::int64_t revision = 0);
  void tell_orphans();
  void orphan_all();

  Client& client_;
  CallId stream_ = 0;
  TimePoint opened_;  // it was
  std::int64_t last_id_ = 0;
  std::unordered_map<std::int64_t, Entry> entries_;
  Timer timer_;  // until those that no server knows are told
  Lifetime lifetime_;
};

}  // namespace dlock::etcd
