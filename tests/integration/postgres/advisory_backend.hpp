// A client of strategy=advisory with other limits than a program's.
//
//   Client client = connect_advisory(server.url(), {}, {.slices = {20ms, 50ms}});
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include <dlock/client.hpp>
#include <dlock/spi/backend.hpp>

#include "backends/postgres/libpq/libpq_connection.hpp"
#include "backends/postgres/schema/schema.hpp"
#include "backends/postgres/session_locks/session_locks.hpp"

namespace dlock::test {

class AdvisoryBackend final : public Backend {
 public:
  AdvisoryBackend(BackendHost& host, const BackendConfig& config, postgres::SessionLocks::Limits limits)
      : options_(postgres::parse_options(config)),
        dialling_{options_, postgres::libpq_connections(), options_.connect_timeout, options_.response_timeout},
        schema_(host.executor(), options_, dialling_),
        news_(host, false),
        observer_(news_),
        commands_(host.executor(), options_, dialling_, schema_, observer_),
        locks_({host, options_, dialling_, commands_, news_, schema_}, limits) {}

  [[nodiscard]] Capabilities capabilities() const noexcept override { return locks_.capabilities(); }
  [[nodiscard]] std::unique_ptr<Contention> contend(const LockRequest& request, GrantSink& sink) override {
    return locks_.contend(request, sink);
  }
  void renew(const Grant& grant, RenewHandler done) override { locks_.renew(grant, std::move(done)); }
  void release(const Grant& grant, ReleaseHandler done) override { locks_.release(grant, std::move(done)); }
  void close(std::function<void()> done) override { locks_.close(std::move(done)); }

 private:
  const postgres::Options options_;
  const postgres::Dialling dialling_;
  postgres::Schema schema_;
  common::ConnectionNews news_;
  common::ConnectionNews::Source observer_;
  postgres::Commands commands_;
  postgres::SessionLocks locks_;
};

[[nodiscard]] inline Client connect_advisory(const std::string& url, ClientOptions options,
                                             postgres::SessionLocks::Limits limits) {
  return connect(url, std::move(options), [limits](BackendHost& host, const BackendConfig& config) {
    return std::make_unique<AdvisoryBackend>(host, config, limits);
  });
}

}  // namespace dlock::test
