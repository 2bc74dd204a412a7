// The watches of the client, all in one stream.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <string_view>
#include <unordered_map>
#include <utility>

#include <dlock/spi/backend.hpp>
#include <dlock/spi/executor.hpp>
#include <dlock/spi/lifetime.hpp>

#include "backends/etcd/connection/client.hpp"
#include "backends/etcd/wire/messages.hpp"

namespace dlock::etcd {

// In tasks only.
class Watches final : private Client::Stream {
 public:
  // Keys of the range may have changed, the last time in this revision of the cluster. Not news to a client that has
  // read the range in that revision or a later one.
  using Handler = std::function<void(std::int64_t revision)>;
  static constexpr std::int64_t any_revision = std::numeric_limits<std::int64_t>::max();

  // A watch, until its destruction. If the stream breaks, or etcd has compacted the history, it is set again.
  class Interest final : public Watch {
   public:
    Interest(Watches& watches, KeyRange range, bool puts, Handler handler)
        : watches_(watches), range_(std::move(range)), puts_(puts), handler_(std::move(handler)) {}
    ~Interest() override { watches_.cancel(*this); }
    [[nodiscard]] const KeyRange& range() const noexcept { return range_; }

   private:
    friend class Watches;
    Watches& watches_;
    const KeyRange range_;
    const bool puts_;
    const Handler handler_;
    std::int64_t id_ = 0;
    bool at_server_ = false;
    bool lost_ = false;  // and not set again since
  };

  explicit Watches(Client& client) : client_(client), timer_(client.executor()) {}

  // Events of the client: streams can be opened; all streams are gone.
  void client_ready();
  void client_down();

  // Watches the range from now on: deletions, and puts if they are requested. Reports the revision in which the watch
  // was set, because the caller has to read what happened before. (A watch that begins in the past reports nothing for
  // up to 0.1 s: members read the past for all watches together.) Never calls the handler inside the call.
  [[nodiscard]] std::unique_ptr<Interest> watch(KeyRange range, bool puts, Handler handler);

 private:
  // With a new number, because a member may still have the watch of the last one.
  void set(Interest& interest);
  void cancel(const Interest& interest);
  void stream_message(std::string_view message) override;
  void stream_ended(const GrpcStatus& status) override;
  void notify(std::int64_t id, std::int64_t revision);
  // No watch is at a server any more.
  void stream_gone();
  // Sets those that are at no server. any_revision is reported when they are set, and at once if that fails repeatedly.
  void set_orphans();
  void set_orphans_after(std::chrono::nanoseconds pause);

  Client& client_;
  CallId stream_ = 0;
  TimePoint opened_;  // the stream, or the first of several that ended at once
  std::int64_t last_id_ = 0;
  std::unordered_map<std::int64_t, Interest*> interests_;
  Timer timer_;  // of set_orphans(), or of leaving the member
  Lifetime lifetime_;
};

}  // namespace dlock::etcd
