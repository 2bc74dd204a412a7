// A client of a lock service that does what it is told, and says what came of it. Commands come by a named pipe, one a
// line; each is answered with a line "<number of the command> <answer>". Things done to this process, such as a stepped
// clock, are so done to a client alone. See commanded_client.hpp.
#include <time.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <exception>
#include <fstream>
#include <functional>
#include <iostream>
#include <map>
#include <memory>
#include <mutex>
#include <sstream>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <system_error>
#include <utility>

#include <dlock/dlock.hpp>

namespace dlock::torture {
namespace {

// Lines of several threads stay whole.
void say(const std::string& line) {
  static std::mutex mutex;
  const std::scoped_lock lock(mutex);
  std::cout << line << std::endl;  // NOLINT(performance-avoid-endl): somebody waits for it
}

std::int64_t milliseconds_of(clockid_t clock) {
  timespec t{};
  (void)::clock_gettime(clock, &t);  // cannot fail: these clocks are there
  return std::chrono::floor<std::chrono::milliseconds>(std::chrono::seconds(t.tv_sec) +
                                                       std::chrono::nanoseconds(t.tv_nsec))
      .count();
}

std::string clocks() {
  std::ostringstream text;
  text << milliseconds_of(CLOCK_REALTIME) << ' ' << milliseconds_of(CLOCK_MONOTONIC) << ' '
       << milliseconds_of(CLOCK_BOOTTIME) << ' '
       << std::chrono::floor<std::chrono::milliseconds>(LeaseClock::now().time_since_epoch()).count();
  return text.str();
}

class RenewalTeller final : public Observer {
 public:
  void renewed(const RenewedEvent&) override { say("event renewed " + std::to_string(++times_)); }
  [[nodiscard]] int times() const { return times_; }

 private:
  std::atomic<int> times_{0};
};

class Commanded {
 public:
  explicit Commanded(const std::string& url) : client_(connect(url, {.observer = renewals_})) {}

  std::string obey(const std::string& command) {
    std::istringstream words(command);
    std::string verb;
    std::string name;
    words >> verb >> name;
    try {
      if (verb == "clocks") return clocks();
      if (verb == "renewed") return std::to_string(renewals_->times());
      if (verb == "acquire") return acquire(name, words);
      if (verb == "wait") return wait(name);
      if (verb == "held") return lease(name).held() ? "held" : "not held";
      if (verb == "release") return release(name);
    } catch (const Error& e) {
      return "error " + e.code().message() + " | " + e.detail();
    } catch (const std::exception& e) {
      return std::string("broken ") + e.what();
    }
    return "broken: no such command";
  }

 private:
  struct Held {
    explicit Held(Lease taken)
        : lease(std::move(taken)), on_loss(lease.lost(), [name = lease.name()] { say("event lost " + name); }) {}

    Lease lease;
    std::stop_callback<std::function<void()>> on_loss;
  };

  std::string acquire(const std::string& name, std::istream& words) {
    int milliseconds = 0;
    words >> milliseconds;
    return keep(name, client_.make_lock(name).acquire({.wait = std::chrono::milliseconds(milliseconds)}));
  }

  // Without blocking, and without a limit; "event granted <name> <token>" or "event denied <name> ..." follows.
  std::string wait(const std::string& name) {
    client_.make_lock(name).async_acquire({}, [this, name](std::error_code ec, Lease taken) {
      say(ec ? "event denied " + name + " " + ec.message() : "event " + keep(name, std::move(taken)));
    });
    return "waiting";
  }

  std::string keep(const std::string& name, Lease taken) {
    std::string answer = "granted " + name + " " + std::to_string(taken.token().value());
    const std::scoped_lock lock(mutex_);
    held_.insert_or_assign(name, std::make_unique<Held>(std::move(taken)));
    return answer;
  }

  std::string release(const std::string& name) {
    const auto ours = lease(name).release();
    const std::scoped_lock lock(mutex_);
    held_.erase(name);
    return ours ? "ours" : "not ours";
  }

  Lease& lease(const std::string& name) {
    const std::scoped_lock lock(mutex_);
    return held_.at(name)->lease;
  }

  const std::shared_ptr<RenewalTeller> renewals_ = std::make_shared<RenewalTeller>();
  std::mutex mutex_;
  std::map<std::string, std::unique_ptr<Held>> held_;
  Client client_;  // the last: ends before what its handlers use
};

}  // namespace
}  // namespace dlock::torture

int main(int argc, char** argv) {
  if (argc != 3) return 64;
  try {
    dlock::torture::Commanded commanded(argv[1]);
    std::ifstream commands(argv[2]);
    dlock::torture::say("ready");
    int number = 0;
    for (std::string command; std::getline(commands, command);) {
      if (command == "quit") return 0;
      dlock::torture::say(std::to_string(++number) + " " + commanded.obey(command));
    }
    throw std::runtime_error("there are no more commands");
  } catch (const std::exception& e) {
    std::cerr << e.what() << '\n';
    return 1;
  }
}
