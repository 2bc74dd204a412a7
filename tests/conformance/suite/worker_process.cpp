// The other end of Worker: what runs in the helper process.
#include <poll.h>
#include <spawn.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <exception>
#include <fstream>
#include <iostream>
#include <optional>
#include <sstream>
#include <stdexcept>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include <dlock/conformance/suite.hpp>
#include <dlock/dlock.hpp>

#include "suite/kind.hpp"

namespace dlock::conformance {

namespace {

class Servant {
 public:
  Servant(const std::string& url, ClientOptions options, const Kind& kind)
      : kind_(kind), client_(connect(url, std::move(options))) {}

  std::string serve(const std::string& line) {
    std::istringstream words(line);
    std::string command;
    words >> command;
    if (command == "acquire") return acquire(words);
    if (command == "release") return std::string("released ") + (lease_.release() ? "1" : "0");
    if (command == "held") return std::string("held ") + (lease_.held() ? "1" : "0");
    if (command == "cycle") return cycle(words);
    if (command == "count") return count(words);
    if (command == "spawn") return spawn();
    throw std::invalid_argument("unknown command \"" + line + "\"");
  }

 private:
  std::string acquire(std::istringstream& words) {
    std::string name;
    long lease_ms = 0;
    words >> name >> lease_ms;
    AcquireOptions options;
    if (lease_ms > 0) options.lease = std::chrono::milliseconds(lease_ms);
    const auto lock = kind_.make(client_, name);
    lease_ = lock->acquire(options);
    return "granted " + std::to_string(lease_.token().value()) + " " + std::to_string(valid_for_ms());
  }

  [[nodiscard]] long valid_for_ms() const {
    if (lease_.valid_until() == TimePoint::max()) return 0;
    return std::chrono::ceil<std::chrono::milliseconds>(lease_.valid_until() - LeaseClock::now()).count();
  }

  std::string cycle(std::istringstream& words) {
    std::string name;
    int times = 0;
    words >> name >> times;
    const auto lock = kind_.make(client_, name);
    std::string answer = "tokens";
    for (int i = 0; i < times; ++i) {
      const Lease lease = lock->acquire({});
      answer += " " + std::to_string(lease.token().value());
    }
    return answer;
  }

  std::string count(std::istringstream& words) {
    std::string name;
    std::string file;
    int times = 0;
    words >> name >> file >> times;
    const auto lock = kind_.make(client_, name);
    for (int i = 0; i < times; ++i) {
      const Lease lease = lock->acquire({});
      long value = 0;
      std::ifstream(file) >> value;
      std::ofstream(file) << value + 1;
    }
    return "counted";
  }

  static std::string spawn() {
    std::array<std::string, 2> arguments{"/proc/self/exe", "--dlock-conformance-idle"};
    std::array<char*, 3> argv{arguments[0].data(), arguments[1].data(), nullptr};
    pid_t pid = -1;
    const int error = posix_spawn(&pid, "/proc/self/exe", nullptr, nullptr, argv.data(), environ);
    if (error != 0) throw std::system_error(error, std::system_category(), "cannot spawn");
    return "spawned " + std::to_string(pid);
  }

  const Kind& kind_;
  Client client_;
  Lease lease_;
};

int serve(const std::string& url, const ClientOptions& options, const std::string& kind_name) {
  const auto kind =
      std::find_if(kinds().begin(), kinds().end(), [&](const Kind& each) { return each.name == kind_name; });
  if (kind == kinds().end()) return 1;
  std::optional<Servant> servant;
  for (std::string line; std::getline(std::cin, line);) {
    try {
      if (!servant) servant.emplace(url, options, *kind);
      std::cout << servant->serve(line) << std::endl;
    } catch (const std::exception& e) {
      std::cout << "error " << e.what() << std::endl;
    }
  }
  return 0;
}

// Keeps whatever it inherited until the other end of its standard input is closed.
int idle() {
  pollfd input{STDIN_FILENO, 0, 0};
  while ((input.revents & POLLHUP) == 0) {
    if (poll(&input, 1, -1) < 0 && errno != EINTR) return 1;
  }
  return 0;
}

}  // namespace

std::optional<int> run_as_helper(int argc, char** argv) {
  const std::vector<std::string> arguments(argv, argv + argc);
  if (argc == 6 && arguments[1] == "--dlock-conformance-worker") {
    ClientOptions options{.label = arguments[3]};
    if (const long lease_ms = std::stol(arguments[5]); lease_ms > 0)
      options.lease = std::chrono::milliseconds(lease_ms);
    return serve(arguments[2], options, arguments[4]);
  }
  if (argc == 2 && arguments[1] == "--dlock-conformance-idle") return idle();
  return std::nullopt;
}

}  // namespace dlock::conformance
