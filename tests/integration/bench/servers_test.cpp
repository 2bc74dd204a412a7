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
  for (const char* url : {
         "--quick --url memory:// --url file:///",
#if DLOCK_BENCH_WITH_REDIS
             "redis://127.0.0.1:", "redis-sentinel://127.0.0.1:", "redis-cluster://127.0.0.1:",
#endif
#if DLOCK_BENCH_WITH_ZOOKEEPER
             "zookeeper://127.0.0.1:",
#endif
#if DLOCK_BENCH_WITH_ETCD
             "etcd://127.0.0.1:",
#endif
#if DLOCK_BENCH_WITH_POSTGRES
             "postgresql://"
#endif
       }) {
    EXPECT_NE(output.find(url), std::string::npos) << output;
  }
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

}  // namespace
}  // namespace dlock::test
