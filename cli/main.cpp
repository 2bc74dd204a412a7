#include <string>
#include <variant>
#include <vector>

#include "cli/arguments.hpp"
#include "cli/commands.hpp"
#include "cli/exit_code.hpp"
#include "cli/inherited.hpp"
#include "cli/output.hpp"
#include "cli/program.hpp"
#include "cli/run.hpp"

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
  }
  return static_cast<int>(ExitCode::internal);
}

int dlock_main(const std::vector<std::string>& words, Inherited& inherited) {
  if (const auto other = words_for_other_program(words)) return become(*other, inherited);
  if (!words.empty() && words.front() == "complete") return complete(words, inherited);
  const auto parsed = parse_arguments(words);
  if (const Answer* answer = std::get_if<Answer>(&parsed)) {
    print(answer->text);
    return static_cast<int>(ExitCode::ok);
  }
  return dispatch(std::get<Arguments>(parsed), inherited);
}

}  // namespace

}  // namespace dlock::cli

int main(int argc, char** argv) {
  return dlock::cli::run_program(argc, argv, &dlock::cli::dlock_main);
}
