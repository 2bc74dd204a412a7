// PostgreSQL for a simulation: the real backend over a fake server.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "backends/postgres/options.hpp"
#include "tests/simulation/postgres/fake_postgres.hpp"
#include "tests/simulation/service.hpp"

namespace dlock::simulation {

class PostgresService final : public Service {
 public:
  PostgresService(Executor& executor, std::uint64_t seed, postgres::Strategy strategy);

  [[nodiscard]] std::string url() const override;
  [[nodiscard]] std::unique_ptr<Backend> connect(int process, BackendHost& host, const BackendConfig& config) override;
  void cut(int process) override { server_.cut(process); }
  void set_reachable(int process, bool reachable) override { server_.set_reachable(process, reachable); }
  void expire(int process) override { server_.expire(process); }
  void release_held() override { server_.release_held(); }
  void bury(int process) override { server_.bury(process); }
  [[nodiscard]] std::size_t owners(LockKind kind, const std::string& name) override;
  [[nodiscard]] int holder(LockKind kind, const std::string& name) override;

 private:
  [[nodiscard]] std::vector<int> processes(LockKind kind, const std::string& name, bool waiters);

  const postgres::Strategy strategy_;
  postgres::FakePostgres server_;
};

}  // namespace dlock::simulation
