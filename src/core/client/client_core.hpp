// A client: one engine, one backend, and the calls to them.
#pragma once

#include <memory>

#include <dlock/client.hpp>
#include <dlock/options.hpp>
#include <dlock/spi/backend.hpp>

#include "core/shard/acquisition.hpp"
#include "core/shard/client_context.hpp"
#include "core/shard/shard.hpp"
#include "engine/engine.hpp"

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
  [[nodiscard]] const std::shared_ptr<Shard>& shard() const noexcept { return shard_; }
  [[nodiscard]] Stats stats() const noexcept;

  // Starts an acquire; `done` runs exactly once, as a task, or right here when options are wrong or the client is
  // closed.
  std::shared_ptr<Acquisition> acquire(const Target& target, const AcquireOptions& options, AcquireCompletion done);
  // See ~Client. At most one call.
  void close() noexcept;

 private:
  struct Closing;

  void make_backend(Url url, const BackendFactory& factory);
  void keep_forever();

  const std::shared_ptr<ClientContext> context_;
  const std::shared_ptr<Shard> shard_;
};

}  // namespace dlock::detail
