// What can be said on the command line: commands, options, and their help.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>

#include "cli/arguments.hpp"

namespace dlock::cli {

// An option whose text is taken apart later.
struct TextOption {
  const char* name;
  std::string text = {};
};

// The CLI11 application and the places that it fills. The places that follow `arguments` go into it when everything
// was read.
class CommandLine {
 public:
  CommandLine();
  CommandLine(const CommandLine&) = delete;
  CommandLine& operator=(const CommandLine&) = delete;

  CLI::App app{"Distributed locks for the command line.", "dlock"};
  std::vector<std::pair<CLI::App*, Verb>> verbs;
  Arguments arguments;
  std::string url;
  bool try_once = false;
  bool shared = false;
  bool exclusive = false;
  TextOption permits{"--permits"};
  TextOption kind{"--kind"};
  TextOption wait{"--wait"};
  TextOption connect_wait{"--connect-wait"};
  TextOption lease{"--lease"};
  TextOption hold_at_least{"--hold-at-least"};
  TextOption kill_after{"--kill-after"};
  TextOption idle{"--idle"};
  TextOption conflict_status{"--conflict-exit-code"};
  TextOption parent{"--parent"};
  TextOption json_file{"--json"};
  TextOption metrics_file{"--metrics"};

 private:
  CLI::App* add_verb(Verb verb, const char* name, const char* description, std::string footer);
  void add_takers();
  void add_election();
  void add_questions();
  void add_questions_about_the_service();
  void add_bench();
  void add_torture();
  void add_name(CLI::App* verb, const char* description);
  void add_names(CLI::App* verb);
  void add_kinds(CLI::App* verb);
  void add_kind(CLI::App* verb);
  void add_acquire_options(CLI::App* verb);
  void add_time(CLI::App* verb, TextOption& option, const char* description);
  void add_messages(CLI::App* verb);
  void add_metrics(CLI::App* verb);
  void add_json(CLI::App* verb);
};

}  // namespace dlock::cli
