// dlock's command line: commands, options, and their help.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>

#include "cli/arguments.hpp"

namespace dlock::cli {

// The CLI11 application and the variables that it fills.
class CommandLine {
 public:
  CommandLine();
  CommandLine(const CommandLine&) = delete;
  CommandLine& operator=(const CommandLine&) = delete;

  CLI::App app{"Distributed locks for the command line.", "dlock"};
  std::vector<std::pair<CLI::App*, Verb>> verbs;
  Arguments arguments;
  std::optional<Duration> connect_wait;
  std::string kind_option;  // which of --shared, --exclusive and --permits was given

 private:
  CLI::App* add_verb(Verb verb, const char* name, const char* description);
  void add_takers();
  void add_election();
  void add_questions();
  void add_questions_about_the_service();
  void add_names(CLI::App* verb, const char* description, bool several);
  void add_kinds(CLI::App* verb);
  void add_kind(CLI::App* verb);
  void add_acquire_options(CLI::App* verb);
  void add_messages(CLI::App* verb);
  void add_metrics(CLI::App* verb);
  CLI::Option* add_json(CLI::App* verb);
};

}  // namespace dlock::cli
