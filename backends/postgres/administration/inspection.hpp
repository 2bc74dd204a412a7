// Questions about locks, breaking one, and forgetting names.
#pragma once

#include <cstddef>
#include <functional>
#include <list>
#include <map>
#include <optional>
#include <string>
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
  ~Inspection();

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
  using KeySpace = AdvisoryKey::KeySpace;

  [[nodiscard]] Questions questions_for(LockKind kind, KeySpace space) const;
  [[nodiscard]] const Questions& questions_about(LockKind kind, const std::string& name = {});
  void ask(const Statement& question, std::vector<Parameter> params, Handler done);
  void look(LockKind kind, const std::string& name, bool tables, Backend::Handler<LockInfo> done);
  void try_to_break(std::list<Breaking>::iterator breaking);
  void try_later(std::list<Breaking>::iterator breaking);
  void finish(std::list<Breaking>::iterator breaking, const Result<bool>& result);
  // nullopt: not yet.
  [[nodiscard]] std::optional<Result<bool>> broken(Breaking& breaking, const Outcome& outcome, const Results& results);

  Commands& commands_;
  // By the space of their keys where they are advisory. They stay where they are.
  std::map<std::pair<LockKind, KeySpace>, Questions> questions_;
  std::function<std::size_t(LockKind, const std::string&)> waiting_;
  std::list<Breaking> breaking_;
};

}  // namespace dlock::postgres
