// Runs code in a child made by fork(), and returns the result.
//
//   EXPECT_EQ(test::ForkedChild::run([&](test::ForkedChild& child) { child.check(!lease.held()); }), "good");
#pragma once

#include <sys/wait.h>
#include <unistd.h>

#include <functional>
#include <string>

namespace dlock::test {

class ForkedChild {
 public:
  void check(bool ok) {
    ++number_;
    if (!ok && failed_ == 0) failed_ = number_;
  }
  // Returns "good", or the first check that failed, or the signal that ended the child.
  static std::string run(const std::function<void(ForkedChild&)>& f) {
    const pid_t pid = fork();
    if (pid == 0) {
      alarm(30);  // a hang in the child ends by a signal
      ForkedChild child;
      f(child);
      _exit(child.failed_);
    }
    int status = 0;
    if (waitpid(pid, &status, 0) != pid) return "no child";
    if (WIFSIGNALED(status)) return "killed by signal " + std::to_string(WTERMSIG(status));
    return WEXITSTATUS(status) == 0 ? "good" : "check " + std::to_string(WEXITSTATUS(status)) + " failed";
  }

 private:
  int number_ = 0;
  int failed_ = 0;
};

}  // namespace dlock::test
