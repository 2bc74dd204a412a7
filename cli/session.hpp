// The client of the commands that acquire locks.
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

// A client for run, elect and hold, with its signals and reports.
struct Session {
  // Warns if the backend is limited to this process: it excludes no other dlock. Throws what connect() throws, and
  // UsageError if the URL sets a different time than --lease.
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

// With the verbosity that the arguments request.
[[nodiscard]] std::shared_ptr<Reporter> reporter_for(const Arguments& arguments);

// The holder's label for a command: the program's file name, in the characters and length of a label.
[[nodiscard]] std::string label_for(std::string_view program);

}  // namespace dlock::cli
