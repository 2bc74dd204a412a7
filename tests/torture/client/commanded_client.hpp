// A client of a lock service in a process of its own, to which things can be done that are not to be done to the test.
//
//   CommandedClient client(server.url("lease=2s"));
//   EXPECT_TRUE(client.tell("acquire a 1000").starts_with("granted a "));
//   client.tell("wait b");                            // "waiting"; later an event "granted b <token>"
//   EXPECT_EQ(client.tell("held a"), "held");
//   EXPECT_EQ(client.tell("release a"), "ours");
//
// Commands: acquire <name> <milliseconds>, wait <name>, held <name>, release <name>, renewed, clocks. An error is
// answered "error <kind> | <detail>", a loss is an event "lost <name>".
#pragma once

#include <sys/types.h>

#include <memory>
#include <string>
#include <vector>

#include "torture/rig/child_process.hpp"
#include "torture/rig/scratch_directory.hpp"
#include "util/unique_fd.hpp"

namespace dlock::torture {

class CommandedClient {
 public:
  // With these variables in its environment. Throws std::runtime_error, with what it printed, if it does not come up.
  explicit CommandedClient(const std::string& url, const std::vector<std::string>& variables = {});
  CommandedClient(const CommandedClient&) = delete;
  CommandedClient& operator=(const CommandedClient&) = delete;
  // Lets it end in good order, releasing what it holds, if it still obeys.
  ~CommandedClient();

  [[nodiscard]] pid_t pid() const noexcept { return process_->pid(); }
  [[nodiscard]] bool running() const { return process_->running(); }
  // All that it has said, for messages of tests.
  [[nodiscard]] std::string said() const { return process_->output(); }

  // The answer. Throws std::runtime_error, with all that it said, if there is none.
  std::string tell(const std::string& command);
  // Waits for an event that begins so; its text after that. Throws as above.
  [[nodiscard]] std::string await_event(const std::string& begin) const;
  [[nodiscard]] bool had_event(const std::string& begin) const;
  // Waits until it has renewed its leases so many times more. Throws as above.
  void await_renewals(int more);

 private:
  [[nodiscard]] std::string await_line(const std::string& begin) const;

  rig::ScratchDirectory directory_;
  std::unique_ptr<rig::ChildProcess> process_;
  util::UniqueFd pipe_;
  int commands_ = 0;
};

}  // namespace dlock::torture
