// The memory backend, and clients that exchange messages with its store, with what can be wrong with them.
#pragma once

#include <cstdint>
#include <memory>
#include <set>
#include <string>

#include "backends/memory/memory_store.hpp"
#include "tests/simulation/service.hpp"
#include "tests/simulation/world.hpp"
#include "tests/support/message_backend.hpp"
#include "tests/support/mutants/mutant_backend.hpp"

namespace dlock::simulation {

// How clients reach the store.
enum class Way {
  messages,  // that meet with fates; by watch or poll
  calls,     // as programs do
};

class MemoryService final : public Service {
 public:
  MemoryService(Executor& executor, std::uint64_t seed, Way way, memory::Strategy strategy, Mutation mutation);
  ~MemoryService() override;

  [[nodiscard]] std::string url() const override { return "memory://"; }
  [[nodiscard]] std::unique_ptr<Backend> connect(int process, BackendHost& host, const BackendConfig& config) override;
  void cut(int /*process*/) override {}  // messages have no connection
  void set_reachable(int process, bool reachable) override;
  void expire(int /*process*/) override {}
  void release_held() override { faults_->resume(); }
  void bury(int process) override { buried_.insert(process); }
  [[nodiscard]] std::size_t owners(LockKind kind, const std::string& name) override {
    return store_->residue(name, executor_.clock(), kind);
  }
  [[nodiscard]] int holder(LockKind kind, const std::string& name) override;

 private:
  class Messages;

  Executor& executor_;
  const Way way_;
  const memory::Strategy strategy_;
  const Mutation mutation_;
  const std::shared_ptr<memory::MemoryStore> store_ = std::make_shared<memory::MemoryStore>();
  const std::shared_ptr<messages::Faults> faults_ = std::make_shared<messages::Faults>();
  const std::shared_ptr<mutants::Service> mutant_ = mutants::make_service();
  std::set<int> unreachable_;
  std::set<int> buried_;
};

[[nodiscard]] Subject memory_subject(Way way, memory::Strategy strategy, Mutation mutation = Mutation::none);

}  // namespace dlock::simulation
