// All processes that a command starts end before another client has its lock, also in other process groups and
// sessions, and as daemons.
#include <algorithm>
#include <csignal>

#include "cli/process_tree.hpp"
#include "support/cli_test.hpp"
#include "support/job_shell.hpp"

#ifdef DLOCK_TEST_WITH_REDIS
#include "tests/support/redis_server.hpp"
#include "torture/rig/tcp_proxy.hpp"
#endif

namespace dlock::cli::test {
namespace {

struct Escape {
  const char* name;
  const char* script;  // starts "$0" stubborn and goes on
};

const std::vector<Escape> escapes{
    {"TimeLimit", "timeout 100 \"$0\" stubborn & "},
    {"JobControl", "set -m; \"$0\" stubborn & set +m; "},
    {"Session", "setsid \"$0\" stubborn & "},
    {"Daemon", "setsid -f \"$0\" stubborn; "},
    {"DaemonWithoutEnvironment", "env -i setsid -f \"$0\" stubborn; "},
};

std::string all_escapes() {
  std::string script;
  for (const Escape& escape : escapes) script += escape.script;
  return script;
}

class Descendants : public CliTest {
 protected:
  // The command that starts escapees, and then is "probe LAST".
  static std::vector<std::string> command_with(const std::string& script, const std::string& last = "wait") {
    return {"bash", "-c", script + "exec \"$0\" " + last, probe_path()};
  }
  [[nodiscard]] std::vector<std::string> run_with(const std::string& script, const std::string& last = "wait",
                                                  const std::string& kill_after = "50ms") const {
    std::vector<std::string> words{"--kill-after", kill_after, "job", "--"};
    for (const std::string& word : command_with(script, last)) words.push_back(word);
    return dlock("run", words);
  }
  // All that say "ready".
  static std::vector<Watched> read_ready(Process& run, std::size_t count) {
    std::vector<Watched> watched;
    while (watched.size() < count) {
      for (const pid_t pid : pids_in(run.line())) watched.emplace_back(pid);
    }
    return watched;
  }
  static bool all_dead(const std::vector<Watched>& watched) {
    return std::all_of(watched.begin(), watched.end(), [](const Watched& process) { return process.is_dead(); });
  }
  static bool all_die(const std::vector<Watched>& watched) {
    return std::all_of(watched.begin(), watched.end(), [](const Watched& process) { return process.wait_for_death(); });
  }
};

class Escaped : public Descendants, public testing::WithParamInterface<Escape> {
 protected:
  Escaped() : run(run_with(GetParam().script)), escaped(read_ready(run, 2)) {}
  // Waits from now on, and enters as soon as it can.
  void expect_all_dead_when_another_enters() {
    EXPECT_EQ(waiter.line(), "job");
    EXPECT_TRUE(all_dead(escaped));
  }

  Process run;
  std::vector<Watched> escaped;
  Process waiter{run_probe({"environment", "DLOCK_NAME"})};
};

TEST_P(Escaped, CommandEnded_EndsIt) {
  run.close_input();
  expect_all_dead_when_another_enters();
  EXPECT_EQ(run.wait(), 0);
}

TEST_P(Escaped, DlockTerminated_EndsIt) {
  run.signal(SIGTERM);
  expect_all_dead_when_another_enters();
  EXPECT_EQ(run.wait(), 128 + SIGTERM);
}

TEST_P(Escaped, DlockKilled_EndsIt) {
  run.signal(SIGKILL);
  expect_all_dead_when_another_enters();
}

TEST_P(Escaped, LockLost_EndsIt) {
  remove_lock_files();
  EXPECT_EQ(run.wait(), 79);
  EXPECT_TRUE(all_dead(escaped));
}

INSTANTIATE_TEST_SUITE_P(By, Escaped, testing::ValuesIn(escapes),
                         [](const auto& param_info) { return std::string(param_info.param.name); });

TEST_F(Descendants, Interrupt_ReachesThemAsTermAfterTheCommand) {
  // Both end by themselves, however long a busy machine takes to run them.
  Process run(run_with("setsid \"$0\" listen & ", "listen", "1h"));
  (void)read_ready(run, 2);
  run.signal(SIGINT);
  EXPECT_EQ(run.line(), std::to_string(SIGINT));
  EXPECT_EQ(run.line(), std::to_string(SIGTERM)) << "the command had ended then";
  EXPECT_EQ(run.wait(), 33);
}

TEST_F(Descendants, Term_ReachesThemWithTheCommand) {
  Process run(dlock(
      "run", {"job", "--", "bash", "-c", "trap '' TERM; setsid \"$0\" listen & \"$0\" wait; echo end", probe_path()}));
  (void)read_ready(run, 2);
  run.signal(SIGTERM);
  EXPECT_EQ(run.line(), std::to_string(SIGTERM)) << "and the command goes on";
  run.close_input();
  EXPECT_EQ(run.line(), "end");
}

TEST_F(Descendants, OuterDlockKilled_EndsThoseOfANestedOne) {
  Process run(run_with(dlock_path() + " run --url " + url() +
                       " inner -- sh -c 'setsid \"$0\" stubborn & exec \"$0\" stubborn' \"$0\" & "));
  const auto watched = read_ready(run, 3);
  run.signal(SIGKILL);
  EXPECT_TRUE(all_die(watched));
}

class AllEscaped : public Descendants {
 protected:
  Process run{run_with(all_escapes())};
  const std::vector<Watched> watched = read_ready(run, escapes.size() + 1);
  const std::optional<pid_t> reaper = child_named("lock-reaper", run.pid());
};

TEST_F(AllEscaped, DlockAndGuardianKilled_EndsThem) {
  const auto guardian = child_named("lock-guard", run.pid());
  ASSERT_TRUE(guardian);
  ASSERT_EQ(::kill(*guardian, SIGKILL), 0);
  run.signal(SIGKILL);
  EXPECT_TRUE(all_die(watched));
}

TEST_F(AllEscaped, ReaperStoppedAndDlockKilled_EndsThem) {
  ASSERT_TRUE(reaper);
  const Watched watched_reaper(*reaper);
  ASSERT_EQ(::kill(*reaper, SIGSTOP), 0);
  run.signal(SIGKILL);
  EXPECT_TRUE(all_die(watched));
  ASSERT_EQ(::kill(*reaper, SIGCONT), 0);
  EXPECT_TRUE(watched_reaper.wait_for_death());
}

TEST_F(AllEscaped, ReaperKilled_EndsThem) {
  ASSERT_TRUE(reaper);
  ASSERT_EQ(::kill(*reaper, SIGKILL), 0);
  EXPECT_EQ(run.error_line(), "dlock: the reaper process was killed; ending the command");
  EXPECT_EQ(run.wait(), 128 + SIGKILL);
  EXPECT_TRUE(all_dead(watched));
  EXPECT_TRUE(lock_is_free());
}

// A shell that has background jobs becomes dlock: they are dlock's children then, but none of the command's.
class Strangers : public Descendants {
 protected:
  [[nodiscard]] std::vector<std::string> shell_that_becomes_dlock() const {
    std::vector<std::string> command{"bash", "-c", "\"$0\" stubborn & setsid -f \"$0\" stubborn; exec \"$@\"",
                                     probe_path()};
    for (const std::string& word : run_with("setsid \"$0\" stubborn & ")) command.push_back(word);
    return command;
  }
  Strangers() : run(shell_that_becomes_dlock()) {
    for (int i = 0; i < 4; ++i) {
      const pid_t pid = pids_in(run.line()).at(0);
      (is_below_the_reaper(pid) ? descendants : strangers).push_back(pid);
    }
    EXPECT_EQ(strangers.size(), 2U);
    for (const pid_t pid : descendants) watched.emplace_back(pid);
  }
  ~Strangers() override {
    for (const pid_t pid : strangers) (void)::kill(pid, SIGKILL);
  }
  [[nodiscard]] bool is_below_the_reaper(pid_t pid) const {
    const auto reaper = child_named("lock-reaper", run.pid());
    auto process = status_of(pid);
    while (process && process->parent != reaper) process = status_of(process->parent);
    return process.has_value();
  }
  void expect_strangers_alive() const {
    for (const pid_t pid : strangers) EXPECT_FALSE(Watched(pid).is_dead());
  }

  Process run;
  std::vector<pid_t> strangers;
  std::vector<pid_t> descendants;
  std::vector<Watched> watched;  // the descendants
};

TEST_F(Strangers, CommandEnded_SparesThem) {
  run.close_input();
  EXPECT_EQ(run.wait(), 0);
  EXPECT_TRUE(all_dead(watched));
  expect_strangers_alive();
}

TEST_F(Strangers, DlockKilled_SparesThem) {
  run.signal(SIGKILL);
  EXPECT_TRUE(all_die(watched));
  expect_strangers_alive();
}

TEST_F(Strangers, ReaperKilled_SparesThem) {
  const auto reaper = child_named("lock-reaper", run.pid());
  ASSERT_TRUE(reaper);
  ASSERT_EQ(::kill(*reaper, SIGKILL), 0);
  EXPECT_EQ(run.wait(), 128 + SIGKILL);
  expect_strangers_alive();
  for (const pid_t pid : descendants) (void)::kill(pid, SIGKILL);
}

// What is typed at cat comes back when cat is in the foreground, and not before.
TEST_F(Descendants, JobControlOfAShell_StopsAndContinuesThem) {
  JobShell shell(dlock("run", {"job", "--", "env", "PS1=next> ", "bash", "--norc", "--noediting", "-i"}));
  shell.await("next> ");
  shell.type("cat\n");
  shell.type("first line\n");
  shell.await("first line\r\n");
  shell.type("\x1a");
  shell.await("next> ");
  shell.type("fg\n");
  shell.type("second line\n");
  shell.await("second line\r\n");
  shell.type("\x03");
  shell.await("next> ");
  shell.type("exit 7\n");
  EXPECT_EQ(shell.job_news(), "exited 7");
}

#ifdef DLOCK_TEST_WITH_REDIS
class DescendantsUnderALease : public Descendants {
 protected:
  [[nodiscard]] std::vector<std::string> run_through_proxy() const {
    std::vector<std::string> words{
        dlock_path(), "run",    "--url",        server.url_at(proxy.port(), "close_timeout=50ms"),
        "--lease",    "1500ms", "--kill-after", "50ms",
        "job",        "--"};
    for (const std::string& word : command_with(all_escapes())) words.push_back(word);
    return words;
  }
  void expect_all_dead_when_another_enters() {
    EXPECT_EQ(waiting.line(), "job");
    EXPECT_TRUE(all_dead(watched));
  }

  dlock::test::RedisServer server;
  dlock::rig::TcpProxy proxy{dlock::rig::Endpoint::loopback(server.port())};
  Process run{run_through_proxy()};
  const std::vector<Watched> watched = read_ready(run, escapes.size() + 1);
  Process waiting{{dlock_path(), "run", "--url", server.url(), "job", "--", probe_path(), "environment", "DLOCK_NAME"}};
};

TEST_F(DescendantsUnderALease, ConnectionCut_EndsThemBeforeTheLease) {
  proxy.refuse(true);
  proxy.drop();
  expect_all_dead_when_another_enters();
  EXPECT_EQ(run.wait(), 79);
}

TEST_F(DescendantsUnderALease, DlockKilled_EndsThemBeforeTheLease) {
  run.signal(SIGKILL);
  expect_all_dead_when_another_enters();
}

TEST_F(DescendantsUnderALease, DlockStopped_EndsThemBeforeTheLease) {
  run.signal(SIGSTOP);
  expect_all_dead_when_another_enters();
  run.signal(SIGCONT);
  EXPECT_EQ(run.wait(), 79);
}
#endif

}  // namespace
}  // namespace dlock::cli::test
