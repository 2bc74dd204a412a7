// The lock service, as the commands that take locks meet it.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include <dlock/client.hpp>

#include "cli/arguments.hpp"
#include "cli/inherited.hpp"
#include "cli/reporter.hpp"
#include "cli/signal_queue.hpp"

namespace dlock::cli {

// A client for run, elect and hold, and what goes with a wait.
struct Session {
  // Warns of a backend that only knows this process: it excludes nobody from the command line. Throws what connect()
  // throws, and UsageError where the URL says another time than --lease.
  Session(const Arguments& given, const Inherited& before, std::string label);
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;
  ~Session();

  const Arguments& arguments;
  const Inherited& inherited;
  SignalQueue signals;
  const std::string url;
  const std::shared_ptr<Reporter> reporter;
  const Client client;
};

// Says what the arguments want to be said.
[[nodiscard]] std::shared_ptr<Reporter> reporter_for(const Arguments& arguments);

// The name under which a command's lock appears to people: the program's file name, as far as a label may hold it.
[[nodiscard]] std::string label_for(std::string_view program);

}  // namespace dlock::cli
