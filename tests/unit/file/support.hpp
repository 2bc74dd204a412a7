// Scratch directories, second processes and children for the tests of the file backend.
#pragma once

#include <gtest/gtest.h>
#include <sys/types.h>

#include <chrono>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include <dlock/dlock.hpp>

#include "backends/file/file_backend.hpp"
#include "torture/rig/hang_guard.hpp"
#include "torture/rig/scratch_directory.hpp"

namespace dlock::file::test {

using dlock::rig::hang_guard;

class ScratchDirectory : public dlock::rig::ScratchDirectory {
 public:
  // A directory for locks inside it, which does not exist yet.
  [[nodiscard]] std::string locks() const { return path() + "/locks"; }
  [[nodiscard]] std::string url() const { return "file://" + locks(); }
};

// The helper program, see helper.cpp. Killed and reaped at the end.
class Helper {
 public:
  explicit Helper(const std::vector<std::string>& arguments);
  Helper(const Helper&) = delete;
  Helper& operator=(const Helper&) = delete;
  ~Helper();

  [[nodiscard]] pid_t pid() const noexcept { return pid_; }
  // The next line that it prints, or "" when it ended or hangs.
  [[nodiscard]] std::string line();
  // Closes its standard input, which tells it to go on.
  void proceed();
  void kill();
  // Its exit status, or -1 if it was killed.
  int wait();

 private:
  pid_t pid_ = -1;
  int in_ = -1;
  int out_ = -1;
  std::string buffered_;
};

// Runs the body in a forked child and answers the text of the exception that it threw, or "" if none.
[[nodiscard]] std::string in_child(const std::function<void()>& body);
// For such bodies.
void require(bool condition, const std::string& what);
// That a system call succeeded which this machine may refuse, and otherwise says so, with errno, after `not_permitted`.
inline constexpr const char* not_permitted = "not permitted: ";
void require_permitted(bool done, const std::string& what);
// In a test: that a body in a child went well. The test is skipped, with the reason, where it was not permitted.
#define EXPECT_WELL(outcome)                                                                        \
  do {                                                                                              \
    const std::string text = (outcome);                                                             \
    if (text.find(not_permitted) != std::string::npos) GTEST_SKIP() << "needs privilege: " << text; \
    EXPECT_EQ(text, "");                                                                            \
  } while (false)

// The code and text of the error that f throws; an empty code if it throws none.
[[nodiscard]] Failure failure_of(const std::function<void()>& f);

[[nodiscard]] std::string read_file(const std::string& path);
void write_file(const std::string& path, const std::string& content);
// How many descriptors this process has open on files whose path ends like that.
[[nodiscard]] std::size_t open_descriptors(const std::string& ending = {});

// A client whose backend can be looked at.
struct OpenBackend {
  explicit OpenBackend(const std::string& url, ClientOptions options = {});
  FileBackend* backend = nullptr;
  Client client;
};

// Moves a clock forward in small steps until the condition holds or `limit` of its time is over.
[[nodiscard]] bool advance_until(ManualClock& clock, std::chrono::milliseconds limit,
                                 const std::function<bool()>& condition);

// The observer's warnings and losses, readable from the test.
class Recorder final : public Observer {
 public:
  void lost(const LostEvent& event) override;
  void warning(const WarningEvent& event) override;
  // What was heard so far, as soon as there is something; observers are told a little later than leases. Empty if
  // nothing comes.
  [[nodiscard]] std::vector<LostEvent> losses() const;
  [[nodiscard]] std::vector<WarningEvent> warnings() const;

 private:
  mutable std::mutex mutex_;
  mutable std::condition_variable heard_;
  std::vector<LostEvent> losses_;
  std::vector<WarningEvent> warnings_;
};

// Waits until the lease is lost; false if that does not happen.
[[nodiscard]] bool wait_for_loss(const Lease& lease);

}  // namespace dlock::file::test
