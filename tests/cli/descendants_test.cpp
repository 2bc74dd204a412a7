// All processes that a command starts end before another client has its lock, also in other process groups and
// sessions, and as daemons. descendants.transcript has what needs no more than the order of lines.
#include <sys/wait.h>

#include <csignal>
#include <string>
#include <utility>
#include <vector>

#include "cli/guardian.hpp"
#include "support/cli_test.hpp"
#include "support/full_pipe.hpp"
#include "support/job_shell.hpp"

#ifdef DLOCK_TEST_WITH_REDIS
#include "tests/support/redis_server.hpp"
#include "torture/rig/tcp_proxy.hpp"
#endif

namespace dlock::cli::test {
namespace {

// Each starts "$0" stubborn, which escapes, and goes on.
const std::vector<std::string> escapes{
    "timeout 100 \"$0\" stubborn & ", "set -m; \"$0\" stubborn & set +m; ", "setsid \"$0\" stubborn & ",
    "setsid -f \"$0\" stubborn; ",    "env -i setsid -f \"$0\" stubborn; ",
};

class Descendants : public CliTest {
 protected:
  // All that say "ready".
  static std::vector<Watched> read_ready(Process& run, std::size_t count) {
    std::vector<Watched> watched;
    while (watched.size() < count) {
      for (const pid_t pid : pids_in(run.line())) watched.emplace_back(pid);
    }
    return watched;
  }
};

class Escaped : public Descendants {
 protected:
  // options of a service that is not the directory; others: the URL of the client that waits.
  explicit Escaped(std::vector<std::string> options = {}, const std::string& others = {})
      : run(command(options.empty() ? std::vector<std::string>{"--url", url()} : std::move(options))),
        escaped(read_ready(run, escapes.size() + 1)),
        waiter({dlock_path(), "run", "--url", others.empty() ? url() : others, "job", "--", "printenv", "DLOCK_NAME"}) {
  }
  // The other client has waited, and enters as soon as it can.
  void expect_all_dead_when_another_enters() {
    EXPECT_EQ(waiter.line(), "job");
    for (const Watched& process : escaped) EXPECT_TRUE(process.is_dead());
  }

  Process run;
  const std::vector<Watched> escaped;  // and the command itself
  Process waiter;

 private:
  // dlock run with a command that starts those that escape, and then is "probe wait".
  static std::vector<std::string> command(const std::vector<std::string>& options) {
    std::string script;
    for (const std::string& escape : escapes) script += escape;
    std::vector<std::string> words{dlock_path(), "run", "--kill-after", "50ms"};
    words.insert(words.end(), options.begin(), options.end());
    words.insert(words.end(), {"job", "--", "bash", "-c", script + "exec \"$0\" wait", probe_path()});
    return words;
  }
};

TEST_F(Escaped, CommandEnded_EndsThem) {
  run.close_input();
  expect_all_dead_when_another_enters();
  EXPECT_EQ(run.wait(), 0);
}

TEST_F(Escaped, DlockTerminated_EndsThem) {
  run.signal(SIGTERM);
  expect_all_dead_when_another_enters();
  EXPECT_EQ(run.wait(), 128 + SIGTERM);
}

TEST_F(Escaped, DlockKilled_EndsThem) {
  run.signal(SIGKILL);
  expect_all_dead_when_another_enters();
}

TEST_F(Escaped, LockLost_EndsThem) {
  remove_lock_files();
  EXPECT_EQ(run.wait(), 79);
  for (const Watched& process : escaped) EXPECT_TRUE(process.is_dead());
}

// Whatever dlock says there, it must have acted before.
TEST_F(Descendants, LeftBehind_EndWhileStandardErrorIsUnread) {
  FullPipe errors;
  const auto command =
      dlock("run", {"--kill-after", "50ms", "job", "--", "sh", "-c", "\"$0\" listen & \"$0\" orphan", probe_path()});
  Process run(command, {.error = errors.write_end()});
  const std::vector<Watched> left = read_ready(run, 3);
  Process waiter(dlock("run", {"job", "--", "printenv", "DLOCK_NAME"}));
  run.close_input();
  for (const Watched& process : left) EXPECT_TRUE(process.wait_for_death());
  errors.drain();
  EXPECT_EQ(run.wait(), 5);
  EXPECT_EQ(waiter.finish().out, "job\n");
}

// Continued, it would find orders that are long out of date, and end a command whose lock is held.
TEST(Guardian, StoppedTooLong_IsKilled) {
  Guardian guardian;
  ASSERT_EQ(::kill(guardian.pid(), SIGSTOP), 0);
  int status = 0;
  ASSERT_EQ(::waitpid(guardian.pid(), &status, WUNTRACED), guardian.pid());
  ASSERT_TRUE(WIFSTOPPED(status));
  const Watched watched(guardian.pid());
  while (guardian.watch({}, {}, TimePoint::max())) {
  }
  EXPECT_TRUE(watched.wait_for_death());
}

#ifdef DLOCK_TEST_WITH_MEMORY
TEST_F(Descendants, LostLead_EndsTheCommandAndWithOnceTheCandidacy) {
  for (const bool once : {false, true}) {
    Process candidate({dlock_path(), "elect", "--quiet", "--url", "memory://", "--lease", "500ms",
                       once ? "--once" : "--wait=forever", "post", "--", probe_path(), "family"});
    for (int term = 0; term < (once ? 1 : 2); ++term) {
      const auto pids = pids_in(candidate.line());
      const Watched leader(pids.at(0));
      const Watched grandchild(pids.at(1));
      candidate.signal(SIGSTOP);
      EXPECT_TRUE(leader.wait_for_death());
      EXPECT_TRUE(grandchild.wait_for_death());
      candidate.signal(SIGCONT);
    }
    EXPECT_THAT(candidate.error_line(), testing::StartsWith("dlock: lost \"post\""));
    if (once) {
      EXPECT_EQ(candidate.wait(), 79);
    }
  }
}
#endif

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
struct LeasedLocks {
  dlock::test::RedisServer server;
  dlock::rig::TcpProxy proxy{dlock::rig::Endpoint::loopback(server.port())};
};

class EscapedUnderALease : protected LeasedLocks, public Escaped {
 protected:
  EscapedUnderALease()
      : Escaped({"--url", server.url_at(proxy.port(), "close_timeout=50ms"), "--lease", "1500ms"}, server.url()) {}
};

TEST_F(EscapedUnderALease, ConnectionCut_EndsThemBeforeTheLease) {
  proxy.refuse(true);
  proxy.drop();
  expect_all_dead_when_another_enters();
  EXPECT_EQ(run.wait(), 79);
}

TEST_F(EscapedUnderALease, DlockKilled_EndsThemBeforeTheLease) {
  run.signal(SIGKILL);
  expect_all_dead_when_another_enters();
}

TEST_F(EscapedUnderALease, DlockStopped_EndsThemBeforeTheLease) {
  run.signal(SIGSTOP);
  expect_all_dead_when_another_enters();
  run.signal(SIGCONT);
  EXPECT_EQ(run.wait(), 79);
}

// The guardian ends the command when the lease would have ended without that renewal. Continued, dlock still holds it.
TEST_F(EscapedUnderALease, DlockStoppedAfterARenewal_ReportsALoss) {
  const auto left = [this] { return server.command({"PTTL", "dlock:job"}).integer; };
  for (std::int64_t last = left(), now = last; now <= last; now = left()) last = now;
  run.signal(SIGSTOP);
  for (const Watched& each : escaped) EXPECT_TRUE(each.wait_for_death());
  run.signal(SIGCONT);
  EXPECT_EQ(run.wait(), 79);
}
#endif

}  // namespace
}  // namespace dlock::cli::test
