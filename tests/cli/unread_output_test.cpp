// Nobody reads what dlock prints: a pipe is full, a pager is stopped. That costs no lock, and keeps dlock from hearing
// of nothing.
#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <filesystem>
#include <stdexcept>
#include <string>
#include <utility>

#include "cli/system.hpp"
#include "support/cli_test.hpp"
#include "tests/support/hang_guard.hpp"
#include "tests/support/redis_server.hpp"
#include "tests/support/system_call.hpp"
#include "tests/support/tcp_proxy.hpp"

namespace dlock::cli::test {
namespace {

using dlock::test::Endpoint;
using dlock::test::RedisServer;
using dlock::test::require;
using dlock::test::TcpProxy;

// A pipe that has no room left.
class FullPipe {
 public:
  FullPipe() : ends_(make_pipe()) {
    const int flags = this->flags();
    require(::fcntl(write_end(), F_SETFL, flags | O_NONBLOCK), "fcntl");
    const std::array<char, 4096> filling{};  // of NUL
    while (::write(write_end(), filling.data(), filling.size()) > 0) {
    }
    if (errno != EAGAIN) require(-1, "write");
    require(::fcntl(write_end(), F_SETFL, flags), "fcntl");
  }

  [[nodiscard]] int write_end() const { return ends_.second.get(); }
  // Of the open file, which dlock shares.
  [[nodiscard]] int flags() const { return require(::fcntl(write_end(), F_GETFL), "fcntl"); }
  // Empties it, and reads on until that has come; what came since it was full.
  [[nodiscard]] std::string read_until(const std::string& text) const {
    std::string read;
    while (read.find(text) == std::string::npos) {
      pollfd source{.fd = ends_.first.get(), .events = POLLIN, .revents = 0};
      if (::poll(&source, 1, dlock::test::hang_guard_ms) != 1) throw std::runtime_error("hang: so far: " + read);
      std::array<char, 4096> bytes;
      read.append(bytes.data(),
                  static_cast<std::size_t>(require(::read(ends_.first.get(), bytes.data(), bytes.size()), "read")));
      std::erase(read, '\0');
    }
    return read;
  }

 private:
  std::pair<UniqueFd, UniqueFd> ends_;
};

class UnreadError : public CliTest {
 protected:
  // The file backend's locks are lost when their file is removed.
  void remove_lock_files() const {
    for (const auto& entry : std::filesystem::directory_iterator(scratch().path())) {
      std::filesystem::remove(entry.path());
    }
  }

  const FullPipe full;
};

// Two leases go by after the reconnection: if it kept the lease from being renewed, the command would be ended.
TEST_F(UnreadError, AReconnectionThatCannotBeToldCostsNoLock) {
  RedisServer server;
  TcpProxy proxy(Endpoint::loopback(server.port()));
  const std::string through_proxy = server.url_at(proxy.port());
  const int flags = full.flags();
  const Process::Options unread{.error = full.write_end()};
  Process hold({dlock_path(), "hold", "--url", through_proxy, "--lease", "1500ms", "held"}, unread);
  (void)hold.line();
  Process run({dlock_path(), "run", "--url", through_proxy, "--lease", "1500ms", "job", "--", "sh", "-c",
               "echo runs; sleep 3; echo done"},
              unread);
  EXPECT_EQ(run.line(), "runs");
  proxy.drop();
  const Finished result = run.finish();
  EXPECT_EQ(result.status, 0);
  EXPECT_EQ(result.out, "done\n");
  EXPECT_THAT(full.read_until("again\n"),
              testing::MatchesRegex("dlock: no connection to the lock service, trying again: [^\n]*\n"
                                    "dlock: connected to the lock service again\n"));
  hold.signal(SIGTERM);
  EXPECT_EQ(hold.wait(), 0) << "79: the lock was lost";
  EXPECT_EQ(full.flags(), flags) << "they are shared with others";
}

TEST_F(UnreadError, ALossThatCannotBeToldEndsTheCommandAndDlock) {
  Process run(run_probe({"listen"}), {.error = full.write_end()});
  (void)run.line();
  remove_lock_files();
  EXPECT_EQ(run.line(), std::to_string(SIGTERM));
  EXPECT_EQ(run.wait(), 79);
}

TEST_F(UnreadError, AWrongCommandLineThatCannotBeToldIsStillOne) {
  Process wrong({dlock_path(), "frobnicate"}, {.error = full.write_end()});
  EXPECT_EQ(wrong.wait(), 64);
}

#ifdef DLOCK_TEST_WITH_MEMORY
TEST_F(UnreadError, WhatWasSaidComesBeforeWhatTheCommandSays) {
  const Finished result =
      run({dlock_path(), "run", "--url", "memory://", "job", "--", "sh", "-c", "echo the command >&2"});
  EXPECT_THAT(result.err, testing::MatchesRegex("dlock: warning: [^\n]*\nthe command\n"));
}
#endif

class UnreadToken : public UnreadError {};

TEST_F(UnreadToken, ASignalFreesTheLock) {
  Process hold(dlock("hold", {"job"}), {.output = full.write_end()});
  const auto held = [this] { return run(dlock("list", {"--held", "--names"})).out == "job\n"; };
  while (!held()) {  // ended by ctest's time limit if it never comes
  }
  hold.signal(SIGTERM);
  EXPECT_EQ(hold.wait(), 0);
  EXPECT_TRUE(lock_is_free());
}

TEST_F(UnreadToken, ALossEndsTheHold) {
  Process hold(dlock("hold", {"job"}), {.output = full.write_end()});
  const auto held = [this] { return run(dlock("list", {"--held", "--names"})).out == "job\n"; };
  while (!held()) {  // ended by ctest's time limit if it never comes
  }
  remove_lock_files();
  const Finished result = hold.finish();
  EXPECT_EQ(result.status, 79);
  EXPECT_THAT(result.err, testing::StartsWith("dlock: lost \"job\""));
}

}  // namespace
}  // namespace dlock::cli::test
