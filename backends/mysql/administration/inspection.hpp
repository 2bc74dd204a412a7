// Questions about locks, and their administration, for all strategies.
#pragma once

#include <cstddef>
#include <functional>
#include <list>
#include <map>
#include <string>
#include <vector>

#include <dlock/info.hpp>
#include <dlock/spi/backend.hpp>

#include "backends/common/sql/commands.hpp"
#include "backends/mysql/options.hpp"
#include "backends/mysql/sql/questions.hpp"

namespace dlock::mysql {

// Each question is answered once, never inside the call, within the response timeout. In tasks only. `commands` and the
// options outlive it, and are destroyed before the next task runs.
class Inspection final {
 public:
  Inspection(sql::Commands& commands, const Options& options);
  ~Inspection();

  // waiting: how many acquires of a name wait without the server's knowledge. inspect() adds them to the server's
  // count.
  void count_also(std::function<std::size_t(LockKind kind, const std::string& name)> waiting) {
    waiting_ = std::move(waiting);
  }

  void inspect(LockKind kind, const std::string& name, Backend::Handler<LockInfo> done);
  void list(LockKind kind, Backend::Handler<std::vector<LockInfo>> done);
  // With strategy=for-update and strategy=named the server ends the session of the holder. Answers once the lock is no
  // longer that session's. Sessions of other users need the right CONNECTION ADMIN.
  void break_lock(LockKind kind, const std::string& name, Backend::Handler<bool> done);
  void forget(const Forgetting& what, Backend::Handler<std::vector<std::string>> done);

 private:
  struct Breaking;
  using Breakings = std::list<Breaking>;

  // The reference stays valid.
  [[nodiscard]] const Questions& questions_about(LockKind kind);
  void ask(std::vector<sql::Command> commands, sql::Handler done);
  // Rows of inspect or list, with the one parameter that they take.
  void look(const sql::Statement& question, const std::optional<sql::Statement>& committed, const Questions& questions,
            const std::string& parameter, Backend::Handler<sql::Rows> done);
  void break_session(Breakings::iterator breaking);
  void finish(Breakings::iterator breaking, Result<bool> result);
  void forget_names(const Questions& questions, std::vector<std::string> names, const std::string& age,
                    Backend::Handler<std::vector<std::string>> done);

  sql::Commands& commands_;
  const Options& options_;
  std::map<LockKind, Questions> questions_;
  std::function<std::size_t(LockKind, const std::string&)> waiting_;
  Breakings breaking_;
};

}  // namespace dlock::mysql
