#include <exception>
#include <string>
#include <variant>
#include <vector>

#include "cli/arguments.hpp"
#include "cli/commands.hpp"
#include "cli/exit_code.hpp"
#include "cli/inherited.hpp"
#include "cli/output.hpp"
#include "cli/run.hpp"
#include "cli/secret_arguments.hpp"

namespace dlock::cli {

namespace {

int dispatch(const Arguments& arguments, Inherited& inherited) {
  switch (arguments.verb) {
    case Verb::run:
      return run_command(arguments, inherited);
    case Verb::hold:
      return hold(arguments, inherited);
    case Verb::elect:
      return elect(arguments, inherited);
    case Verb::leader:
      return leader(arguments, inherited);
    case Verb::status:
      return status(arguments);
    case Verb::list:
      return list(arguments);
    case Verb::break_lock:
      return break_lock(arguments);
    case Verb::forget:
      return forget(arguments);
    case Verb::doctor:
      return doctor(arguments);
    case Verb::init:
      return init(arguments);
    case Verb::backends:
      return show_backends(arguments);
    case Verb::bench:
      return bench_command(arguments, inherited);
    case Verb::torture:
      return torture_command(arguments, inherited);
  }
  return static_cast<int>(ExitCode::internal);
}

int run_main(const std::vector<std::string>& words) {
  try {
    Inherited inherited;
    const auto parsed = parse_arguments(words);
    if (const Answer* answer = std::get_if<Answer>(&parsed)) {
      print(answer->text);
      return static_cast<int>(ExitCode::ok);
    }
    const auto& arguments = std::get<Arguments>(parsed);
    return dispatch(arguments, inherited);
  } catch (const std::exception& error) {
    say(error.what());
    return static_cast<int>(exit_code(error));
  }
}

}  // namespace

}  // namespace dlock::cli

int main(int argc, char** argv) {
  const std::vector<std::string> words(argv + (argc > 0 ? 1 : 0), argv + argc);
  dlock::cli::hide_secrets(argc, argv);
  const int status = dlock::cli::run_main(words);
  dlock::cli::flush_messages();
  return status;
}
