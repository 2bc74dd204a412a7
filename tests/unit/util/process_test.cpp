#include "util/process.hpp"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdint>
#include <set>
#include <string>
#include <thread>
#include <vector>

namespace dlock::util {
namespace {

TEST(Process, TextsAboutTheProcessAreShortAndPrintable) {
  for (const std::string& text : {host_name(), program_name()}) {
    EXPECT_FALSE(text.empty());
    EXPECT_EQ(text.find_first_of(": \n\t"), std::string::npos) << text;
  }
  EXPECT_EQ(process_id(), getpid());
}

TEST(Process, AForkIsCountedInTheChildOnly) {
  const std::uint64_t before = fork_generation();
  const pid_t child = fork();
  if (child == 0) _exit(fork_generation() == before + 1 ? 0 : 1);
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(fork_generation(), before);
}

TEST(Process, RandomNumbersDoNotRepeat) {
  std::set<std::uint64_t> seen;
  for (int i = 0; i < 1000; ++i) seen.insert(kernel_random());
  EXPECT_EQ(seen.size(), 1000U);
}

TEST(Process, RandomNumbersOfTwoThreadsDiffer) {
  std::vector<std::uint64_t> other;
  std::thread([&other] {
    for (int i = 0; i < 100; ++i) other.push_back(kernel_random());
  }).join();
  std::set<std::uint64_t> seen(other.begin(), other.end());
  for (int i = 0; i < 100; ++i) seen.insert(kernel_random());
  EXPECT_EQ(seen.size(), 200U);
}

TEST(Process, AChildDoesNotRepeatTheRandomNumbersOfItsParent) {
  (void)kernel_random();  // fills the parent's supply
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  const pid_t child = fork();
  if (child == 0) {
    const std::uint64_t value = kernel_random();
    _exit(write(ends[1], &value, sizeof value) == sizeof value ? 0 : 1);
  }
  std::uint64_t theirs = 0;
  ASSERT_EQ(read(ends[0], &theirs, sizeof theirs), static_cast<ssize_t>(sizeof theirs));
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  close(ends[0]);
  close(ends[1]);
  std::set<std::uint64_t> ours;
  for (int i = 0; i < 64; ++i) ours.insert(kernel_random());
  EXPECT_FALSE(ours.contains(theirs));
}

}  // namespace
}  // namespace dlock::util
