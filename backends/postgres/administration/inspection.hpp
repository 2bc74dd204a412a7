// Questions about locks, breaking one, and forgetting names.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

#include <dlock/spi/backend.hpp>

#include "backends/postgres/sessions/commands.hpp"
#include "backends/postgres/sql/statements.hpp"

namespace dlock::postgres {

// Asks; where there are no tables yet none are made, and nothing is held but advisory locks of other programs. Each
// answers within the response timeout. In tasks only. `commands` outlives it, and is gone before the next task runs.
class Inspection final {
 public:
  explicit Inspection(Commands& commands);

  // How many acquires of a name wait where the server does not see them, to be counted by
  // inspect() with those that it sees.
  void count_also(std::function<std::size_t(LockKind kind, const std::string& name)> waiting) {
    waiting_ = std::move(waiting);
  }

  void inspect(LockKind kind, const std::string& name, Backend::Handler<LockInfo> done);
  void list(LockKind kind, Backend::Handler<std::vector<LockInfo>> done);
  // With strategy=for-update and strategy=advisory this ends the session of the holder in the server, with everything
  // else that the session has locked, and is done when it is gone; the role must be a member of the holder's, or of
  // pg_signal_backend.
  void break_lock(LockKind kind, const std::string& name, Backend::Handler<bool> done);
  void forget(const Forgetting& what, Backend::Handler<std::vector<std::string>> done);

 private:
  struct Questions {
    Statement inspect;
    Statement list;
    Statement break_lock;
    Statement forget;
    Statement inspect_without_tables;  // of advisory locks
  };
  struct Breaking;

  // By the space of the key; the first for all but advisory locks.
  using AllQuestions = std::array<Questions, 3>;

  [[nodiscard]] static AllQuestions questions_for(const Options& options, LockKind kind);
  [[nodiscard]] const Questions& questions_about(LockKind kind, const std::string& name = {});
  void ask(const Statement& question, LockKind kind, const std::string& name, Backend::Handler<LockInfo> done);
  void try_to_break(const std::shared_ptr<Breaking>& breaking);
  void tried_to_break(const std::shared_ptr<Breaking>& breaking, const Outcome& outcome, const Results& results);

  Commands& commands_;
  std::map<LockKind, AllQuestions> questions_;  // of the kinds that were asked about; they stay where they are
  std::function<std::size_t(LockKind, const std::string&)> waiting_;
  std::unordered_set<std::shared_ptr<Breaking>> pausing_;  // before another attempt
};

}  // namespace dlock::postgres
