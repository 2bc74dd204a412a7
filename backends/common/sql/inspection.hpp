// Questions about locks, and their administration, for all strategies.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <list>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <dlock/info.hpp>
#include <dlock/spi/backend.hpp>
#include <dlock/spi/backoff.hpp>
#include <dlock/spi/executor.hpp>

#include "backends/common/sql/commands.hpp"

namespace dlock::sql {

// Never makes tables. Each call is answered once, never inside the call, within the response timeout. In tasks only.
// `commands` outlives it, and is destroyed before the next task runs.
class Inspection {
 public:
  explicit Inspection(Commands& commands) : commands_(commands) {}
  Inspection(const Inspection&) = delete;
  Inspection& operator=(const Inspection&) = delete;
  virtual ~Inspection() = default;

  // waiting: how many acquires of a name wait without the server's knowledge. inspect() adds them to the server's
  // count.
  void count_also(std::function<std::size_t(LockKind kind, const std::string& name)> waiting) {
    waiting_ = std::move(waiting);
  }

  void inspect(LockKind kind, const std::string& name, Backend::Handler<LockInfo> done);
  void list(LockKind kind, Backend::Handler<std::vector<LockInfo>> done);
  // If locks live in sessions, the server ends the session of the holder, which releases everything that this session
  // has locked. Answers once the lock is no longer that session's. Other users' sessions need a right of their own.
  void break_lock(LockKind kind, const std::string& name, Backend::Handler<bool> done);
  virtual void forget(const Forgetting& what, Backend::Handler<std::vector<std::string>> done) = 0;

 protected:
  struct Breaking {
    Breaking(Commands& commands, LockKind of, std::string lock, Backend::Handler<bool> then)
        : kind(of),
          name(std::move(lock)),
          done(std::move(then)),
          deadline(commands.answer_by()),
          // The outcome of an attempt without an answer is unknown, so the last one has a quarter of the time.
          last_attempt(deadline - (deadline - commands.executor().now()) / 4),
          pause(commands.executor()) {}

    const LockKind kind;
    const std::string name;
    Backend::Handler<bool> done;
    const TimePoint deadline;
    const TimePoint last_attempt;
    bool quiet = false;      // notifies no waiter
    std::string ended = {};  // the sessions that the server was asked to end, in the service's words
    Backoff backoff{std::chrono::milliseconds(200)};
    Timer pause;
  };
  // nullopt: try again.
  using BreakHandler = std::function<void(const std::optional<Result<bool>>& result)>;

  static constexpr std::size_t most_names = 100'000;  // in a list

  [[nodiscard]] Commands& commands() const noexcept { return commands_; }
  // A question that the server refuses for this reason is about locks without tables: none was ever acquired here.
  [[nodiscard]] bool never_set_up(const Outcome& outcome) const {
    return outcome.problem == Problem::refused && is_missing_table(outcome.server_code);
  }
  void ask(std::vector<Command> commands, TimePoint deadline, Handler done);
  void ask(std::vector<Command> commands, Handler done) {
    ask(std::move(commands), commands_.answer_by(), std::move(done));
  }
  // Adds to the failure of forgetting, which already names the rights that locks need.
  [[nodiscard]] static Failure with_grant(Failure why, const std::string& grant);

  // Rows as those of read_infos(). name: empty for all locks, at most one more than most_names.
  void look(LockKind kind, const std::string& name, TimePoint deadline, Backend::Handler<Rows> done);
  // One attempt. `breaking` exists until the answer.
  virtual void try_to_break(Breaking& breaking, BreakHandler done) = 0;

 private:
  using Breakings = std::list<Breaking>;

  [[nodiscard]] virtual bool is_missing_table(std::string_view server_code) const = 0;
  // The question of look(), and how to read its answer.
  [[nodiscard]] virtual std::vector<Command> question(LockKind kind, const std::string& name) = 0;
  [[nodiscard]] virtual Rows read(const Results& results) const { return results.back(); }
  // The question where there are no tables. Empty: no lock is held then.
  [[nodiscard]] virtual std::vector<Command> question_without_tables(LockKind /*kind*/, const std::string& /*name*/) {
    return {};
  }

  void go_on(Breakings::iterator breaking);
  void answered(Breakings::iterator breaking, const std::optional<Result<bool>>& result);

  Commands& commands_;
  std::function<std::size_t(LockKind, const std::string&)> waiting_;
  Breakings breaking_;
};

}  // namespace dlock::sql
