// Questions about locks, breaking one, and forgetting names.
#pragma once

#include <cstddef>
#include <functional>
#include <list>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <dlock/spi/backend.hpp>

#include "backends/common/sql/commands.hpp"
#include "backends/postgres/sql/statements.hpp"

namespace dlock::postgres {

// Never makes tables: where there are none, only advisory locks of other programs can be held. Each call answers within
// the response timeout. In tasks only. `commands` outlives it, and is destroyed before the next task runs; so do the
// options.
class Inspection final {
 public:
  Inspection(Commands& commands, const Options& options);
  ~Inspection();

  // waiting: how many acquires of a name wait without the server's knowledge. inspect() adds them to the server's
  // count.
  void count_also(std::function<std::size_t(LockKind kind, const std::string& name)> waiting) {
    waiting_ = std::move(waiting);
  }

  void inspect(LockKind kind, const std::string& name, Backend::Handler<LockInfo> done);
  void list(LockKind kind, Backend::Handler<std::vector<LockInfo>> done);
  // With strategy=for-update and strategy=advisory the server ends the session of the holder, which releases everything
  // that this session has locked. Answers once the session is gone. The role must be a member of the holder's role, or
  // of pg_signal_backend.
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
  using Breakings = std::list<Breaking>;

  // The reference stays valid.
  [[nodiscard]] const Questions& questions_about(LockKind kind, const std::string& name = {});
  void ask(const Statement& question, std::vector<Parameter> params, Handler done);
  // The answer is the last of the results.
  void ask_about_many(const Statement& question, std::vector<Parameter> params, Handler done);
  void try_to_break(Breakings::iterator breaking);
  void break_answered(Breakings::iterator breaking, const Outcome& outcome, const Results& results);

  Commands& commands_;
  const Options& options_;
  std::map<std::pair<LockKind, AdvisoryKey::KeySpace>, Questions> questions_;
  std::function<std::size_t(LockKind, const std::string&)> waiting_;
  Breakings breaking_;
};

}  // namespace dlock::postgres
