// A client: its shards, and what of a call goes to which of them.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <dlock/client.hpp>
#include <dlock/options.hpp>
#include <dlock/spi/backend.hpp>

#include "core/shard/acquisition.hpp"
#include "core/shard/client_context.hpp"
#include "core/shard/shard.hpp"
#include "engine/engine.hpp"
#include "util/mutex.hpp"

namespace dlock::detail {

// Any thread.
class ClientCore final {
 public:
  // Options must have been validated. Throws what the factory throws.
  [[nodiscard]] static std::shared_ptr<ClientCore> create(std::shared_ptr<engine::Engine> engine, Url url,
                                                          const ClientOptions& options, const BackendFactory& factory);
  explicit ClientCore(std::shared_ptr<ClientContext> context);
  ~ClientCore();

  [[nodiscard]] const ClientContext& context() const noexcept { return *context_; }
  [[nodiscard]] engine::Engine& engine() const noexcept { return *context_->engine; }
  [[nodiscard]] Stats stats() const noexcept;

  // The one whose backend answers questions.
  [[nodiscard]] const std::shared_ptr<Shard>& main() const noexcept { return main_; }
  // Where a name belongs: always the same one. Made when it is first asked for.
  [[nodiscard]] const std::shared_ptr<Shard>& shard_of(std::string_view name);

  // Starts an acquire; `done` runs exactly once, as a task, or right here when options are wrong or the client is
  // closed.
  std::shared_ptr<Acquisition> acquire(const Target& target, const AcquireOptions& options, AcquireCompletion done);
  // See ~Client. At most one call.
  void close() noexcept;

 private:
  // So many where calls are answered at once: more than most machines have processors, so that callers seldom meet.
  static constexpr std::size_t most_shards = 8;

  struct Closing;

  void make_backend(Url url, const BackendFactory& factory);
  [[nodiscard]] std::shared_ptr<Shard> make_shard() DLOCK_REQUIRES(shards_mutex_);
  // Calls f with each shard there is by now.
  template <class F>
  void for_each_shard(F f) const;
  [[nodiscard]] std::vector<std::shared_ptr<Shard>> shards() const;
  void keep_forever();

  const std::shared_ptr<ClientContext> context_;
  const std::shared_ptr<Shard> main_;
  std::size_t shard_count_ = 1;  // constant once the client is made

  mutable util::Mutex shards_mutex_;
  std::array<std::shared_ptr<Shard>, most_shards> shards_;  // each written once, before it is ready
  std::array<std::atomic<bool>, most_shards> ready_{};
  bool closing_ DLOCK_GUARDED_BY(shards_mutex_) = false;
};

}  // namespace dlock::detail
