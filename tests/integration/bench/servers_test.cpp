// The program that starts servers for a command.
#include <gtest/gtest.h>

#include <csignal>
#include <string>

#include "torture/rig/child_process.hpp"

namespace dlock::test {
namespace {

TEST(BenchServersTest, Command_GetsAllUrlsAndItsStatusIsReturned) {
  rig::ChildProcess program({DLOCK_BENCH_SERVERS, "sh", "-c", "echo \"$@\"; exit 7", "sh", "--quick"});
  program.wait_for_output_end();
  EXPECT_EQ(program.wait(), 7);
  const std::string output = program.output();
  EXPECT_NE(output.find("--quick --url memory:// --url file:///"), std::string::npos) << output;
#if DLOCK_BENCH_WITH_REDIS
  EXPECT_NE(output.find(" --url redis://127.0.0.1:"), std::string::npos) << output;
  EXPECT_NE(output.find(" --url redis-sentinel://127.0.0.1:"), std::string::npos) << output;
  EXPECT_NE(output.find(" --url redis-cluster://127.0.0.1:"), std::string::npos) << output;
#endif
#if DLOCK_BENCH_WITH_ZOOKEEPER
  EXPECT_NE(output.find(" --url zookeeper://127.0.0.1:"), std::string::npos) << output;
#endif
#if DLOCK_BENCH_WITH_ETCD
  EXPECT_NE(output.find(" --url etcd://127.0.0.1:"), std::string::npos) << output;
#endif
#if DLOCK_BENCH_WITH_POSTGRES
  EXPECT_NE(output.find(" --url postgresql://"), std::string::npos) << output;
#endif
}

TEST(BenchServersTest, Signal_IsPassedOnToTheCommand) {
  rig::ChildProcess program({DLOCK_BENCH_SERVERS, "sh", "-c",
                             "trap 'kill $!; echo interrupted; exit 9' INT; sleep 1000 & echo waiting; wait"});
  ASSERT_TRUE(program.wait_for_output("waiting")) << program.output();
  program.signal(SIGINT);
  program.wait_for_output_end();
  EXPECT_EQ(program.wait(), 9);
  EXPECT_NE(program.output().find("interrupted"), std::string::npos);
}

TEST(BenchServersTest, CommandThatDoesNotExist_IsReported) {
  rig::ChildProcess program({DLOCK_BENCH_SERVERS, "/nonexistent/program"});
  program.wait_for_output_end();
  EXPECT_EQ(program.wait(), 127);
}

}  // namespace
}  // namespace dlock::test
