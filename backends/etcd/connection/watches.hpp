// The watches of the client, all in one stream.
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
    standing,  // the watch is set: it reports changes after the revision
    event,     // a key of the range was deleted, or put if that was requested
    over,      // the stream broke, or etcd has compacted the history: read again, and watch again
  };
  // The revision: the cluster's at that event.
  using Handler = std::function<void(News, std::int64_t revision)>;

  // A watch, until its destruction.
  class Interest {
   public:
    Interest(Watches& watches, std::int64_t id) noexcept : watches_(watches), id_(id) {}
    Interest(const Interest&) = delete;
    Interest& operator=(const Interest&) = delete;
    ~Interest() { watches_.cancel(id_); }

   private:
    Watches& watches_;
    const std::int64_t id_;
  };

  explicit Watches(Client& client) : client_(client), timer_(client.executor()) {}

  // Events of the client: streams can be opened; all streams are gone.
  void client_ready();
  void client_down();

  // Watches the range from now on; the caller reads what happened before the watch was set. (A watch that begins in the
  // past reports nothing for up to 0.1 s: members read the past for all watches together.) Never calls the handler
  // inside the call.
  [[nodiscard]] std::unique_ptr<Interest> watch(const KeyRange& range, bool puts, Handler handler);

 private:
  struct Entry {
    Handler handler;
    bool at_server = false;
  };

  void cancel(std::int64_t id);
  void stream_message(std::string_view message) override;
  void stream_ended(const GrpcStatus& status) override;
  void notify(std::int64_t id, News news, std::int64_t revision = 0);
  // No watch is at a server any more.
  void stream_gone();
  // Notifies those that are at no server, which then watch again.
  void notify_orphans();
  void notify_orphans_after(std::chrono::nanoseconds pause);

  Client& client_;
  CallId stream_ = 0;
  TimePoint opened_;  // the stream, or the first of several that ended at once
  std::int64_t last_id_ = 0;
  std::unordered_map<std::int64_t, Entry> entries_;
  Timer timer_;  // of notify_orphans(), or of leaving the member
  Lifetime lifetime_;
};

}  // namespace dlock::etcd
