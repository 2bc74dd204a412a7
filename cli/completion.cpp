#include "cli/completion.hpp"

#include <algorithm>
#include <cstddef>
#include <map>
#include <optional>

#include <fmt/format.h>

#include <dlock/client.hpp>

#include "cli/application.hpp"
#include "cli/exit_code.hpp"
#include "cli/output.hpp"

namespace dlock::cli {

namespace {

class Completion {
 public:
  Completion(const CLI::App& app, const std::vector<std::string>& words, const LockNames& names)
      : app_(app), words_(words), current_(words.back()), names_(names) {}

  std::string answer() {
    if (!app_.get_subcommands({}).empty()) {
      if (words_.size() == 1 && !current_.starts_with('-')) return commands();
      if (words_.front() == "help") return words_.size() == 2 ? commands() : shown();
      if (words_.size() > 1) command_ = find_command(app_, words_.front());
      if (words_.size() > 1 && command_ == nullptr) return shown();
      next_ = words_.size() > 1 ? 1 : 0;
    }
    if (const CLI::Option* option = read_until_current()) return values_of(*option, "");
    if (behind_separator_) return "command\n";
    const auto equals = current_.find('=');
    if (current_.starts_with("--") && equals != std::string::npos) {
      const CLI::Option* option = command_->get_option_no_throw(current_.substr(0, equals));
      return option == nullptr ? shown() : values_of(*option, current_.substr(0, equals + 1));
    }
    return current_.starts_with('-') ? options() : lock_names();
  }

 private:
  // Reads the words in front of the current one. Returns the option whose value that is, or nullptr.
  const CLI::Option* read_until_current() {
    while (next_ + 1 < words_.size()) {
      const std::string& word = words_[next_++];
      if (word == "--" && (command_->get_name() == "run" || command_->get_name() == "elect")) {
        behind_separator_ = true;
        return nullptr;
      }
      if (!word.starts_with('-')) {
        ++arguments_;
        continue;
      }
      const std::string name = option_in(word);
      const CLI::Option* option = command_->get_option_no_throw(name);
      std::string& value = given_[name];
      if (const auto equals = word.find('='); equals != std::string::npos) {
        value = word.substr(equals + 1);
      } else if (option != nullptr) {
        for (int left = option->get_items_expected_min(); left > 0; --left) {
          if (next_ + 1 >= words_.size()) return option;
          value = words_[next_++];
        }
      }
    }
    return nullptr;
  }

  void add(const std::string& word, const std::string& description = {}) {
    if (word.starts_with(current_)) lines_ += word + (description.empty() ? "" : "\t" + description) + "\n";
  }
  [[nodiscard]] std::string shown() const { return "words\n" + lines_; }

  std::string commands() {
    for (const CLI::App* each : app_.get_subcommands({})) add(each->get_name(), each->get_description());
    add("help", "Print the help of a command");
    return shown();
  }

  std::string options() {
    for (const CLI::Option* each : command_->get_options()) {
      if (each->nonpositional() && !each->get_group().empty()) {
        add("--" + each->get_lnames().front(), each->get_description());
      }
    }
    return shown();
  }

  // The values stand behind `start` in the current word.
  std::string values_of(const CLI::Option& option, const std::string& start) {
    const std::string type = option.get_type_name();
    if (type == "FILE" || option.get_option_text() == "OLD NEW") return "files\n";
    if (type == "DIRECTORY") return "directories\n";
    if (type == "PID") return "processes\n";
    if (type == "TIME") {
      for (const char* each : {"1s", "10s", "1m", "5m", "1h", "1d", "30d"}) add(start + each);
    } else if (type == "URL") {
      for (const std::string& each : backends()) add(start + each + "://");
    } else {
      for (const std::string& each : words_of(option)) add(start + each);
    }
    return shown();
  }
  // See word_check().
  static std::vector<std::string> words_of(const CLI::Option& option) {
    try {
      return CLI::detail::split(const_cast<CLI::Option&>(option).get_validator(0)->get_name(), ' ');
    } catch (const CLI::OptionNotFound&) {
      return {};
    }
  }

  std::string lock_names() {
    const CLI::Option* name = command_->get_option_no_throw("NAME");
    const std::string verb = command_->get_name();
    if (name == nullptr) return shown();
    std::string kind = given_.contains("--kind") ? given_["--kind"] : "";
    if (verb == "elect" || verb == "leader") kind = "election";
    if (given_.contains("--shared") || given_.contains("--exclusive")) kind = "read-write";
    if (given_.contains("--permits")) kind = "semaphore";
    const bool several = name->get_expected_max() > 1 && (kind.empty() || verb == "forget");
    if (several || arguments_ == 0) {
      for (const std::string& each : names_(given_.contains("--url") ? given_["--url"] : "", kind)) add(each);
    }
    if (arguments_ > 0 && current_.empty() && (verb == "run" || verb == "elect")) add("--", "The command follows");
    return shown();
  }

  const CLI::App& app_;
  const std::vector<std::string>& words_;
  const std::string& current_;
  const LockNames& names_;
  const CLI::App* command_ = &app_;
  std::size_t next_ = 0;
  std::map<std::string, std::string> given_;  // options, and their values where they take one
  int arguments_ = 0;
  bool behind_separator_ = false;
  std::string lines_;
};

}  // namespace

std::string completion(const CLI::App& app, const std::vector<std::string>& words, const LockNames& names) {
  return words.empty() ? "words\n" : Completion(app, words, names).answer();
}

int print_completion(const CLI::App& app, const std::vector<std::string>& words, const LockNames& names) {
  print(completion(app, {words.begin() + std::min<std::ptrdiff_t>(2, std::ssize(words)), words.end()}, names));
  return static_cast<int>(ExitCode::ok);
}

std::optional<int> answer_or_parse(CLI::App& app, const std::vector<std::string>& words) {
  if (!words.empty() && words.front() == "complete") return print_completion(app, words);
  const auto answer = parse(app, words);
  if (!answer) return std::nullopt;
  print(*answer);
  return static_cast<int>(ExitCode::ok);
}

}  // namespace dlock::cli
