// Messages in the system log. A program of its own, whose syslog() takes the place of the C library's.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <syslog.h>

#include <array>
#include <cstdarg>
#include <cstdio>
#include <string>
#include <utility>
#include <vector>

#include "cli/output.hpp"
#include "cli/unique_fd.hpp"
#include "torture/rig/scratch_directory.hpp"

namespace {

// Written by the thread of the messages, read after flush_messages().
std::vector<std::pair<int, std::string>>& logged() {
  static std::vector<std::pair<int, std::string>> messages;
  return messages;
}

void note(int priority, const char* format, va_list arguments) {
  std::array<char, 1024> text{};
  (void)std::vsnprintf(text.data(), text.size(), format, arguments);
  logged().emplace_back(priority, text.data());
}

}  // namespace

extern "C" {

void openlog(const char* name, int /*option*/, int facility) {
  logged().emplace_back(facility, name);
}

__attribute__((format(printf, 2, 3))) void syslog(int priority, const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  note(priority, format, arguments);
  va_end(arguments);
}

// With _FORTIFY_SOURCE.
__attribute__((format(printf, 3, 4))) void __syslog_chk(int priority, int /*flag*/, const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  note(priority, format, arguments);
  va_end(arguments);
}
}

namespace dlock::cli {
namespace {

using testing::ElementsAre;
using testing::Pair;

// One test: there is no way back to standard error.
TEST(SystemLog, TakesMessagesWithTheirPriorities) {
  flush_messages();
  testing::internal::CaptureStderr();
  const dlock::rig::ScratchDirectory directory;
  const std::string path = directory.path() + "/log";
  log_to_system(path.c_str());
  flush_messages();
  EXPECT_EQ(testing::internal::GetCapturedStderr(),
            "dlock: warning: there is no system log (" + path +
                ": No such file or directory); messages go to standard error\n");
  EXPECT_TRUE(logged().empty());

  const UniqueFd log(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  sockaddr_un address{.sun_family = AF_UNIX, .sun_path = {}};
  path.copy(static_cast<char*>(address.sun_path), sizeof address.sun_path - 1);
  ASSERT_EQ(::bind(log.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  log_to_system(path.c_str());
  testing::internal::CaptureStderr();
  say("lost \"job\" 100%s");
  say("warning: slow");
  say("freed", Level::info);
  say("another client", Level::notice);
  flush_messages();
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
  EXPECT_THAT(logged(), ElementsAre(Pair(LOG_DAEMON, "dlock"), Pair(LOG_ERR, "lost \"job\" 100%s"),
                                    Pair(LOG_WARNING, "warning: slow"), Pair(LOG_INFO, "freed"),
                                    Pair(LOG_NOTICE, "another client")));
}

}  // namespace
}  // namespace dlock::cli
