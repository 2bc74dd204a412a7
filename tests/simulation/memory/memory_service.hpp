// The memory backend over its own store, to which messages may travel, with what can be wrong with it.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <dlock/token.hpp>

#include "backends/memory/memory_backend.hpp"
#include "backends/memory/memory_store.hpp"
#include "tests/simulation/mutation.hpp"
#include "tests/simulation/service.hpp"
#include "torture/dice.hpp"

namespace dlock::simulation {

// A session without an owner, which hears nothing.
class Nobody final : public memory::Session {
 public:
  Nobody() : Session("nobody") {}
  void granted(LockKind, const std::string&, const OwnerId&, FencingToken, TimePoint) override {}
  void first_in_line(LockKind, const std::string&, const OwnerId&, TimePoint) override {}
  void freed(std::uint64_t) override {}
  void killed() override {}
};

class MemoryService final : public Service {
 public:
  MemoryService(Executor& service_executor, std::uint64_t seed, memory::Strategy way_to_wait, Mutation broken);
  ~MemoryService() override;

  [[nodiscard]] std::string url() const override { return "memory://"; }
  [[nodiscard]] std::unique_ptr<Backend> connect(int process, BackendHost& host, const BackendConfig& config) override;
  void cut(int /*process*/) override {}  // messages have no connection
  void set_reachable(int process, bool reachable) override;
  void expire(int /*process*/) override {}
  void release_held() override { store->faults().resume(); }
  void bury(int process) override;
  [[nodiscard]] std::size_t owners(LockKind kind, const std::string& name) override {
    return store->residue(name, executor.clock(), kind);
  }
  [[nodiscard]] int holder(LockKind kind, const std::string& name) override;

  Executor& executor;
  const memory::Strategy strategy;
  const Mutation mutation;
  const std::shared_ptr<memory::MemoryStore> store = std::make_shared<memory::MemoryStore>();
  // For mutations: another owner, the last token of each lock, how many held each at the last request, who was granted
  // each, and how often something could have gone wrong.
  Nobody nobody;
  std::map<std::string, FencingToken> last_token;
  std::map<std::string, std::size_t> counted;
  std::map<std::string, std::vector<OwnerId>> owners_of;
  std::uint64_t occasions = 0;

 private:
  class Messages;

  // Now and then the store is called in the call, as in a program.
  void change_way();

  torture::Dice dice_;
  const std::shared_ptr<Messages> messages_;
  std::set<int> unreachable_;
  std::set<int> buried_;
  bool direct_ = false;
  Timer next_way_;
};

[[nodiscard]] Subject memory_subject(memory::Strategy strategy, Mutation mutation = Mutation::none);

}  // namespace dlock::simulation
