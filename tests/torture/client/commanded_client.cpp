#include "tests/torture/client/commanded_client.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <exception>
#include <optional>
#include <stdexcept>

#include "torture/rig/hang_guard.hpp"
#include "torture/rig/system_call.hpp"

namespace dlock::torture {
namespace {

// The rest of the first whole line that begins so.
std::optional<std::string> line_after(const std::string& output, const std::string& begin) {
  std::size_t at = 0;
  for (auto end = output.find('\n'); end != std::string::npos; at = end + 1, end = output.find('\n', at)) {
    if (output.compare(at, begin.size(), begin) == 0) return output.substr(at + begin.size(), end - at - begin.size());
  }
  return std::nullopt;
}

}  // namespace

CommandedClient::CommandedClient(const std::string& url, const std::vector<std::string>& variables) {
  const std::string pipe = directory_.path() + "/commands";
  rig::require(::mkfifo(pipe.c_str(), 0600), "mkfifo");
  pipe_ = util::UniqueFd(rig::require(::open(pipe.c_str(), O_RDWR | O_CLOEXEC), "open"));
  process_ = std::make_unique<rig::ChildProcess>(std::vector<std::string>{DLOCK_FAULT_CLIENT, url, pipe}, variables);
  (void)await_line("ready");
}

CommandedClient::~CommandedClient() {
  try {
    if (process_->running()) {
      const std::string quit = "quit\n";
      rig::require(::write(pipe_.get(), quit.data(), quit.size()), "write");
      process_->wait_for_output_end();
    }
  } catch (const std::exception&) {
    (void)0;  // it is killed next
  }
}

std::string CommandedClient::tell(const std::string& command) {
  const std::string line = command + "\n";
  rig::require(::write(pipe_.get(), line.data(), line.size()), "write");
  return await_line(std::to_string(++commands_) + " ");
}

std::string CommandedClient::await_event(const std::string& begin) const {
  return await_line("event " + begin);
}

bool CommandedClient::had_event(const std::string& begin) const {
  return line_after(process_->output(), "event " + begin).has_value();
}

void CommandedClient::await_renewals(int more) {
  const int target = std::stoi(tell("renewed")) + more;
  (void)await_event("renewed " + std::to_string(target));
}

std::string CommandedClient::await_line(const std::string& begin) const {
  const auto there = [&](const std::string& output) { return line_after(output, begin).has_value(); };
  if (!process_->wait_until(there, rig::hang_guard)) {
    throw std::runtime_error("the client does not say \"" + begin + "\"\n" + process_->output());
  }
  return *line_after(process_->output(), begin);
}

}  // namespace dlock::torture
