#include "cli/program.hpp"

#include <unistd.h>

#include <cerrno>
#include <exception>
#include <filesystem>
#include <system_error>

#include <fmt/format.h>

#include "cli/exit_code.hpp"
#include "cli/output.hpp"
#include "cli/secret_arguments.hpp"

namespace dlock::cli {

int run_program(int argc, char** argv, int (*work)(const std::vector<std::string>& words, Inherited& inherited)) {
  const std::vector<std::string> words(argv + (argc > 0 ? 1 : 0), argv + argc);
  hide_secrets(argc, argv);
  int status = 0;
  try {
    Inherited inherited;
    status = work(words, inherited);
  } catch (const std::exception& error) {
    say(error.what());
    status = static_cast<int>(exit_code(error));
  }
  flush_messages();
  return status;
}

std::string path_of(const std::string& program) {
  std::error_code ec;
  const auto beside = std::filesystem::read_symlink("/proc/self/exe", ec).replace_filename(program);
  return !ec && ::access(beside.c_str(), X_OK) == 0 ? beside.string() : program;
}

int become(const std::vector<std::string>& words, const Inherited& inherited) {
  const std::string& program = words.front();
  std::vector<char*> arguments;
  arguments.reserve(words.size() + 1);
  for (const std::string& each : words) arguments.push_back(const_cast<char*>(each.c_str()));
  arguments.push_back(nullptr);
  inherited.restore();
  (void)::execvp(path_of(program).c_str(), arguments.data());
  if (errno != ENOENT) throw std::system_error(errno, std::generic_category(), program);
  say(fmt::format("{} is not installed; on Debian it is in the package dlock-bench", program));
  return static_cast<int>(ExitCode::not_found);
}

}  // namespace dlock::cli
