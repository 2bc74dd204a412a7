// The real Handle, over libzookeeper_mt.
//
// The library has two threads of its own for each handle, whose callbacks only post tasks (c_channel.hpp). Two more
// threads live for a moment: one opens, because the library resolves host names in the call; the other closes, because
// that waits for the server. A handle that is destroyed earlier detaches them; the channel and the operations in flight
// then belong to them.
//
// The library's descriptors, a socket and a pipe, are not close-on-exec, and it offers no way to find them: a program
// that calls exec() must close them itself.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <dlock/spi/executor.hpp>
#include <dlock/spi/lifetime.hpp>

#include "backends/zookeeper/connection/c_channel.hpp"
#include "backends/zookeeper/connection/handle.hpp"
#include "backends/zookeeper/options.hpp"

namespace dlock::zookeeper {

class CHandle final : public Handle {
 public:
  CHandle(Executor& executor, const Options& options, Listener& listener);
  ~CHandle() override;

  void create(const std::string& path, const std::string& data, NodeKind kind, Handler<Created> done) override;
  void get(const std::string& path, WatchId watch, Handler<Node> done) override;
  void exists(const std::string& path, WatchId watch, Handler<Stat> done) override;
  void children(const std::string& path, WatchId watch, Handler<std::vector<std::string>> done) override;
  void set(const std::string& path, const std::string& data, DoneHandler done) override;
  void remove(const std::string& path, DoneHandler done) override;
  void remove_childless(const std::string& path, DoneHandler done) override;
  void sync(const std::string& path, DoneHandler done) override;
  [[nodiscard]] std::int64_t session_id() const noexcept override { return session_; }
  [[nodiscard]] std::chrono::milliseconds session_timeout() const noexcept override { return timeout_; }
  [[nodiscard]] bool waits_for_server() const noexcept override;
  void close(std::function<void()> done) override;

  // --- Tasks of the channel ---
  struct SessionEvent {
    Event event;
    Failure why = {};
    std::int64_t session = 0;
    std::chrono::milliseconds timeout{};
  };
  void opened(zhandle_t* library, int error);
  void session_event(const SessionEvent& event);
  void watch_fired(WatchId id);
  void completed(std::uint64_t id);

 private:
  using Operations = std::map<std::uint64_t, std::unique_ptr<LibraryOperation>>;

  void open();
  [[nodiscard]] const ACL_vector* rights() const noexcept;
  template <class Call>
  void submit(const std::string& path, LibraryOperation::Answer answer, Call call);
  [[nodiscard]] Outcome outcome_of(const LibraryOperation& operation) const;
  void fail_all();
  void drain();
  void close_in_background();
  void report_closed();

  Executor& executor_;
  const Options& options_;
  Listener* listener_;  // nullptr: closed
  const std::shared_ptr<LibraryChannel> channel_;
  zhandle_t* library_ = nullptr;       // between opening and closing
  std::optional<SessionEvent> early_;  // it came before opened()
  std::int64_t session_ = 0;
  std::chrono::milliseconds timeout_{};
  bool connected_ = false;
  std::uint64_t last_operation_ = 0;
  Operations operations_;
  std::function<void()> closed_;
  bool closing_begun_ = false;
  Timer drain_timer_;
  // Detached if they outlive this object: they own what they use.
  std::thread opening_;
  std::thread closing_;
  Lifetime lifetime_;
};

// Handles of this kind. Never throws.
[[nodiscard]] std::unique_ptr<Handle> make_c_handle(Executor& executor, const Options& options,
                                                    Handle::Listener& listener);

}  // namespace dlock::zookeeper
