// Runs the transcripts: commands, and what they print and exit with. Each transcript has a service of its own, which is
// in DLOCK_URL: lock files in $locks, this process's memory, or a server, by the directory that the transcript is in.
// This repository is in $sources. With "isolated", the transcript needs a mount name space.
//
//   # text           a comment
//   $ command        is run by a shell in an empty directory until it ends
//   & name command   is started; the lines below are the first ones that it prints
//   % name signal    is sent to the command with that name, which then ends; the lines below are the rest that it
//                    prints. EOF: the end of its standard input
//   + name signal    is sent to it; the lines below are the next ones that it prints
//   ~ names          of locks that were last used long ago
//   > line           on standard output
//   ! line           on standard error
//   = status         unless it is 0
//
// In a line, "..." is any text; alone, it is any lines. {name} stands for a word: the process id of the command with
// that name, else for the word in its place where the transcript has it first. Commands find them in $name.
#include <algorithm>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <memory>
#include <regex>
#include <sstream>
#include <stdexcept>

#include <dlock/dlock.hpp>

#include "support/cli_test.hpp"
#include "tests/support/servers.hpp"

namespace dlock::cli::test {
namespace {

namespace fs = std::filesystem;

struct Step {
  int line = 0;
  char what = 0;
  std::string words = {};
  std::string out = {};
  std::string err = {};
  int status = 0;
};

std::vector<Step> steps_of(const fs::path& path) {
  std::vector<Step> steps;
  std::ifstream file(path);
  int number = 0;
  for (std::string line; std::getline(file, line);) {
    ++number;
    if (line.empty() || line.starts_with('#')) continue;
    const std::string text = line.size() > 2 ? line.substr(2) : "";
    if (std::string_view("$&+%~").find(line.front()) != std::string_view::npos) {
      steps.push_back({.line = number, .what = line.front(), .words = text});
    } else if (steps.empty() || std::string_view(">!=").find(line.front()) == std::string_view::npos) {
      throw std::runtime_error(path.string() + ":" + std::to_string(number) + " is no line of a transcript");
    } else if (line.front() == '=') {
      steps.back().status = std::stoi(text);
    } else {
      (line.front() == '>' ? steps.back().out : steps.back().err) += text + "\n";
    }
  }
  return steps;
}

std::string first_word(std::string& text) {
  const auto end = std::min(text.find(' '), text.size());
  std::string word = text.substr(0, end);
  text.erase(0, std::min(end + 1, text.size()));
  return word;
}

// Runs a server until the object is destroyed, and gives its URL.
using Service = std::function<std::string()>;

template <class Server, class... Config>
Service serve(Config... config) {
  return [server = std::make_shared<Server>(config...)] { return server->url(); };
}

// By the name of the directory. Those of services that this build does not have are absent.
const std::map<std::string, std::function<Service(const std::string& locks)>> service_makers{
    {"file", [](const std::string& locks) { return [locks] { return "file://" + locks; }; }},
#ifdef DLOCK_TEST_WITH_MEMORY
    {"memory", [](const std::string& /*locks*/) { return [] { return "memory://"; }; }},
#endif
#ifdef DLOCK_TEST_WITH_ETCD
    {"etcd", [](const std::string& /*locks*/) { return serve<dlock::test::EtcdServer>(); }},
#endif
#ifdef DLOCK_TEST_WITH_REDIS
    {"redis", [](const std::string& /*locks*/) { return serve<dlock::test::RedisServer>(); }},
    {"redis_with_password",
     [](const std::string& /*locks*/) {
       return serve<dlock::test::RedisServer>(
           dlock::test::RedisConfig{.password = "top", .user = dlock::test::RedisUser{.password = "locker-secret"}});
     }},
#endif
#ifdef DLOCK_TEST_WITH_ZOOKEEPER
    {"zookeeper", [](const std::string& /*locks*/) { return serve<dlock::test::ZooKeeperServer>(); }},
#endif
};

// "redis" of "redis/kinds.transcript".
std::string service_of(const std::string& transcript) {
  return transcript.substr(0, transcript.find('/'));
}

class Transcript : public testing::TestWithParam<std::string> {
 protected:
  Transcript() : service_(service_makers.at(service_of(GetParam()))(locks_.path())) {
    variables_ = {{"locks", locks_.path()},
                  {"sources", DLOCK_TEST_SOURCES},
                  {"version", DLOCK_TEST_VERSION},
                  {"DLOCK_URL", service_()}};
  }

  [[nodiscard]] Process start(const std::string& command) const {
    std::string path = std::getenv("PATH");
    for (const std::string& program : {dlock_path(), probe_path()})
      path.insert(0, fs::path(program).parent_path().string() + ":");
    Process::Options options{.environment = {{"PATH", path}}, .directory = files_.path()};
    for (const auto& [name, value] : variables_) options.environment[name] = value;
    return Process({"sh", "-c", command}, options);
  }

  void use_long_ago(std::istringstream names) const {
    const Client client = connect(variables_.at("DLOCK_URL"), {.clock = std::make_shared<ManualClock>()});
    for (std::string name; names >> name;) EXPECT_TRUE(client.make_lock(name).acquire().release());
  }

  // Whether they match; then the words that were unknown are known.
  bool match(const std::string& expected, const std::string& text) {
    static const std::regex token(R"(\{[a-zA-Z_]+\}|\.\.\.\n|\.\.\.|[\^$\\.*+?()\[\]{}|])");
    std::string pattern;
    std::vector<std::string> unknown;
    auto end = expected.begin();
    for (auto it = std::sregex_iterator(expected.begin(), expected.end(), token); it != std::sregex_iterator(); ++it) {
      pattern.append(end, (*it)[0].first);
      end = (*it)[0].second;
      const std::string found = it->str();
      const bool whole_line = pattern.empty() || pattern.ends_with('\n') || pattern.ends_with("\n)*");
      if (found == "...\n" && whole_line) {
        pattern += "(?:[^\n]*\n)*";
      } else if (found.starts_with("...")) {
        pattern += "[^\n]*" + found.substr(3);
      } else if (found.size() == 1) {
        pattern += "\\" + found;
      } else if (const auto known = variables_.find(found.substr(1, found.size() - 2)); known != variables_.end()) {
        pattern += std::regex_replace(known->second, std::regex(R"([\^$\\.*+?()\[\]{}|])"), R"(\$&)");
      } else {
        pattern += "([^ \n\",]+)";
        unknown.push_back(found.substr(1, found.size() - 2));
      }
    }
    pattern.append(end, expected.end());
    std::smatch matched;
    if (!std::regex_match(text, matched, std::regex(pattern))) return false;
    for (std::size_t i = 0; i < unknown.size(); ++i) variables_[unknown[i]] = matched[i + 1];
    return true;
  }

  // Runs it as far as it says what is printed.
  Finished perform(Step& step) {
    if (step.what == '$') return start(step.words).finish();
    if (step.what == '~') {
      use_long_ago(std::istringstream(step.words));
      return {.status = 0, .out = "", .err = ""};
    }
    const std::string name = first_word(step.words);
    if (step.what == '&') {
      const Process& process = running_.emplace(name, start("exec " + step.words)).first->second;
      variables_[name] = std::to_string(process.pid());
      return next_lines(name, step);
    }
    for (int signal = 1; signal < NSIG; ++signal) {
      const char* const text = ::sigabbrev_np(signal);
      if (text != nullptr && step.words == text) running_.at(name).signal(signal);
    }
    if (step.what == '+') return next_lines(name, step);
    Process process = std::move(running_.extract(name).mapped());
    return step.words == "EOF" ? process.finish() : process.finish_without_end_of_input();
  }

  // As many as the step has.
  [[nodiscard]] Finished next_lines(const std::string& name, const Step& step) {
    Process& process = running_.at(name);
    Finished finished{.status = 0, .out = "", .err = ""};
    for (auto i = std::ranges::count(step.out, '\n'); i > 0; --i) finished.out += process.line() + "\n";
    for (auto i = std::ranges::count(step.err, '\n'); i > 0; --i) finished.err += process.error_line() + "\n";
    return finished;
  }

  const ScratchDirectory locks_;
  const ScratchDirectory files_;
  const Service service_;
  std::map<std::string, std::string> variables_;
  std::map<std::string, Process> running_;
};

TEST_P(Transcript, Commands_PrintAndExitAsWritten) {
  const std::string path = DLOCK_TEST_SOURCES "/tests/cli/transcripts/" + GetParam();
  for (Step& step : steps_of(path)) {
    SCOPED_TRACE(path + ":" + std::to_string(step.line) + ": " + step.words);
    Finished finished;
    ASSERT_NO_THROW(finished = perform(step));
    EXPECT_EQ(finished.status, step.status) << finished.err;
    EXPECT_TRUE(match(step.out, finished.out)) << "it prints:\n" << finished.out << "instead of:\n" << step.out;
    EXPECT_TRUE(match(step.err, finished.err)) << "it says:\n" << finished.err << "instead of:\n" << step.err;
    if (HasFailure()) return;  // what follows would fail, too
  }
  EXPECT_TRUE(running_.empty()) << running_.begin()->first << " still runs";
}

// The services that this build has and this machine permits.
std::vector<std::string> transcripts() {
  const bool can_isolate = std::system("unshare --map-root-user --mount true 2>/dev/null") == 0;
  std::vector<std::string> found;
  const fs::path folder = DLOCK_TEST_SOURCES "/tests/cli/transcripts";
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    const std::string name = fs::relative(entry, folder);
    const bool isolated = name.find("isolated") != std::string::npos;
    if (entry.is_regular_file() && service_makers.contains(service_of(name)) && (can_isolate || !isolated)) {
      found.push_back(name);
    }
  }
  std::ranges::sort(found);
  return found;
}

INSTANTIATE_TEST_SUITE_P(Of, Transcript, testing::ValuesIn(transcripts()), [](const auto& param_info) {
  return std::regex_replace(param_info.param, std::regex("[^a-zA-Z0-9]"), "_");
});

}  // namespace
}  // namespace dlock::cli::test
