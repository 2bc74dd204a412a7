// A backend written outside dlock's tree: locks in a table of this process.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>

#include <dlock/spi/try_backend.hpp>

namespace outside {

class TableBackend final : public dlock::TryBackend {
 public:
  explicit TableBackend(dlock::BackendHost& host) : TryBackend(host) {}

  [[nodiscard]] dlock::Capabilities capabilities() const noexcept override;
  void try_acquire(const dlock::LockRequest& request, TryHandler done) override;
  [[nodiscard]] std::unique_ptr<dlock::Watch> watch(dlock::LockKind /*kind*/, const std::string& name,
                                                    std::function<void()> changed) override;
  void renew(const dlock::Grant& grant, RenewHandler done) override;
  void release(const dlock::Grant& grant, ReleaseHandler done) override;

 private:
  class Interest;
  struct Entry {
    dlock::OwnerId owner;
    dlock::TimePoint expires_at;
  };

  [[nodiscard]] bool owns(const dlock::Grant& grant) const;

  std::map<std::string, Entry> held_;
  std::multimap<std::string, std::shared_ptr<std::function<void()>>> watchers_;
  std::uint64_t last_token_ = 0;
};

[[nodiscard]] std::unique_ptr<dlock::Backend> make_table_backend(dlock::BackendHost& host,
                                                                 const dlock::BackendConfig& config);

}  // namespace outside
