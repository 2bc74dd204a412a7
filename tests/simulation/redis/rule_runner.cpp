#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <map>
#include <optional>
#include <sstream>
#include <stdexcept>
#include <string_view>
#include <utility>

#include "backends/redis/requests/keys.hpp"
#include "backends/redis/requests/scripts.hpp"
#include "tests/simulation/redis/script_rules.hpp"

namespace dlock::redis {

namespace {

using Type = Reply::Type;
using Words = ScriptServer::Words;

std::string replaced(std::string text, std::string_view from, const std::string& to) {
  for (std::size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size())) {
    text.replace(at, from.size(), to);
  }
  return text;
}

Words split(const std::string& text) {
  std::istringstream in(text);
  Words words;
  for (std::string word; in >> word;) words.push_back(word == R"("")" ? "" : word);
  return words;
}

Words split_at(const std::string& text, char separator) {
  std::istringstream in(text);
  Words parts;
  for (std::string part; std::getline(in, part, separator);) {
    if (part.find_first_not_of(" \n") != std::string::npos) parts.push_back(part);
  }
  return parts;
}

bool matches(const std::string& pattern, const std::string& word) {
  if (pattern == "*" || pattern == word) return true;
  const auto number = [](const std::string& text) { return std::stoll(text); };
  const std::size_t dots = pattern.find("..");
  const bool is_bound = pattern.starts_with('~') || pattern.starts_with('>') || pattern.starts_with("<=");
  if ((!is_bound && dots == std::string::npos) || word.find_first_not_of("-0123456789") != std::string::npos) {
    return false;
  }
  const auto value = number(word);
  if (dots != std::string::npos) return value >= number(pattern) && value <= number(pattern.substr(dots + 2));
  const auto bound = number(pattern.substr(pattern.starts_with('<') ? 2 : 1));
  if (pattern.starts_with('>')) return value > bound;
  return pattern.starts_with('<') ? value <= bound : value > bound * 2 / 3 && value <= bound + 10;
}

Words words_of(const Reply& reply) {
  if (reply.is(Type::integer)) return {std::to_string(reply.integer)};
  if (reply.is(Type::nil)) return {"nil"};
  if (reply.is(Type::error)) return {'-' + reply.text.substr(0, reply.text.find(' '))};
  Words words = split(reply.text);
  if (words.empty() && !reply.is(Type::array)) words.emplace_back();
  for (const Reply& each : reply.elements) {
    const Words more = words_of(each);
    words.insert(words.end(), more.begin(), more.end());
  }
  return words;
}

class Runner {
 public:
  Runner(const ScriptRule& rule, ScriptServer& server)
      : server_(server),
        steps_(rule.steps),
        own_(rule.sharing ? LockKind::semaphore : LockKind::lock),
        newest_(now_us()) {}

  void run() {
    for (const std::string& line : split_at(steps_, '\n')) {
      const std::size_t star = line.find("* ");
      const bool repeats =
          star != std::string::npos && line.substr(0, star).find_first_not_of(" 0123456789") == std::string::npos;
      const int times = repeats ? std::stoi(line) : 1;
      for (int i = 0; i < times; ++i) {
        for (const std::string& each : split_at(repeats ? line.substr(star + 2) : line, ';')) {
          step(repeats ? replaced(each, "#", std::to_string(i)) : each);
        }
      }
    }
  }

 private:
  void step(const std::string& text) {
    SCOPED_TRACE(text);
    const std::size_t arrow = text.find("=>");
    const Words words = split(with_values(text.substr(0, arrow)));
    const std::optional<Words> plain = carry_out(words);
    const Words said = plain ? *plain : script(words);
    if (arrow == std::string::npos) {
      EXPECT_FALSE(!said.empty() && said[0].starts_with('-') && said[0].size() > 3) << said[0];
      return;
    }
    const Words expected = split(with_values(text.substr(arrow + 2)));
    const bool enough = plain ? said.size() == expected.size() : said.size() >= expected.size();
    EXPECT_TRUE(enough && std::equal(expected.begin(), expected.end(), said.begin(), matches))
        << testing::PrintToString(said);
  }

  [[nodiscard]] std::string with_values(std::string text) {
    for (const auto& [name, value] : {std::pair<std::string_view, std::string>("$lock", keys_.lock),
                                      {"$queue", keys_.queue},
                                      {"$alive", keys_.alive},
                                      {"$fence", keys_.fence},
                                      {"$token", token_}}) {
      text = replaced(text, name, value);
    }
    if (text.find("$past") == std::string::npos) return text;
    return replaced(text, "$past", std::to_string(now_us() / 1000 - 1000));
  }

  // nullopt: it is a step of a script.
  std::optional<Words> carry_out(const Words& words) {
    const std::string& verb = words.at(0);
    const std::string argument = words.size() > 1 ? words[1] : "";
    const std::string channel = "dlock:w:" + argument;
    if (verb == "!") {
      Words command(words.begin() + 1, words.end());
      for (std::string& word : command) word = replaced(word, "_", " ");
      return words_of(server_.command(command));
    }
    if (verb == "listen") return server_.listen(channel), Words{};
    if (verb == "hear") {
      const std::string message = server_.hear(channel);
      return message.empty() ? Words{""} : split(message);
    }
    if (verb == "grant") {
      std::string message = server_.hear(channel);
      while (message.find(' ') != std::string::npos) message = server_.hear(channel);
      return Words{message};
    }
    if (verb == "holder") return words_of(server_.command({"GET", keys_.lock}));
    if (verb == "waiters") return words_of(server_.command({"ZCARD", keys_.queue}));
    if (verb == "inside" || verb == "holders") {
      Words all = words_of(server_.command({"ZRANGE", keys_.lock, "0", "-1"}));
      if (verb == "inside") std::ranges::sort(all);
      return all;
    }
    if (verb == "pass") {
      const std::string by = std::to_string(-std::stoll(words.at(2)) - 10);
      return words_of(server_.command({"ZINCRBY", keys_.lock, by, argument}));
    }
    if (verb == "gone") return server_.await_gone(argument), Words{};
    if (verb == "published") return Words{std::to_string(server_.published())};
    if (verb == "forbid-publishing") return server_.forbid_publishing(), Words{};
    return std::nullopt;
  }

  // --- Scripts ---

  Words script(const Words& words) {
    const std::string& verb = words[0];
    if (verb == "renew") {
      return words_of(
          run(renew_script(own_), {keys_.lock, keys_.fence}, {words.at(1), words.size() > 2 ? words[2] : "30000"}));
    }
    if (verb == "forget") {
      return words_of(run(forget_script(own_), {keys_.lock, keys_.queue, keys_.fence}, {words.at(1)}));
    }
    if (verb == "inspect") return words_of(run(inspect_script(own_), {keys_.lock, keys_.queue, keys_.fence}, {}));
    const bool of_release = verb.starts_with("release");
    if (!verb.ends_with("-all")) return of_release ? release(words) : acquire(words);
    for (int calls = 1; calls <= 1000; ++calls) {
      const Words said = of_release ? release(words) : acquire(words);
      const bool over = of_release ? said.at(2) != "1" : !server_.command({"GET", keys_.lock}).is(Type::nil);
      if (over) return {std::to_string(calls)};
    }
    throw std::runtime_error("there is no end of it");
  }

  Words release(const Words& words) {
    Words to = {keys_.lock, keys_.queue, keys_.alive};
    if (several_hold(own_)) to.push_back(keys_.fence);
    Words arguments = {words.at(1), "1000", words.size() > 2 ? words[2] : "stay"};
    arguments.insert(arguments.end(), publish_.begin(), publish_.end());
    Words said = words_of(run(release_script(own_), to, arguments));
    if (said.size() == 1) said.insert(said.end(), {"1", "0"});
    return said;
  }

  Words acquire(Words words) {
    const std::string verb = words[0];
    words.erase(words.begin());
    std::string permits = "0";
    if (verb == "take") {
      permits = words.at(0);
      words.erase(words.begin());
    }
    const std::string& value = words.at(0);
    std::map<std::string, std::string> options = {{"lease", "30000"}, {"alive", "15000"}, {"ticket", "0"}};
    std::string mode = "try";
    for (std::size_t i = 1; i < words.size(); ++i) {
      const std::size_t equals = words[i].find('=');
      (equals == std::string::npos ? mode : options[words[i].substr(0, equals)]) = words[i].substr(equals + 1);
    }
    const bool shares = verb == "read" || verb == "write" || verb == "take";
    std::string holder = shares ? "host:1:" + value : "host:1:test";
    if (verb == "elect") holder = "host:1:" + value + "\n10.0.0.7:80";
    Words arguments = {value, options["lease"], mode, options["alive"], "1000", holder, options["ticket"]};
    if (shares) arguments.insert(arguments.end(), {permits, verb == "write" ? "0" : "1"});
    arguments.insert(arguments.end(), publish_.begin(), publish_.end());
    Script script = acquire_script(shares            ? LockKind::semaphore
                                   : verb == "elect" ? LockKind::election
                                                     : LockKind::lock);
    const Words all_keys = {keys_.lock, keys_.queue, keys_.alive, keys_.fence};
    if (verb == "acquire-1970") {
      const std::string text =
          replaced(std::string(script.text), "local time = call('TIME')", "local time = {'25', '123456'}");
      EXPECT_NE(text, script.text);
      script.text = text;
      return words_of(run(script, all_keys, arguments));
    }
    return judged(value, run(script, all_keys, arguments));
  }

  // The words of an acquire's answer.
  Words judged(const std::string& value, const Reply& reply) {
    if (reply.is(Type::error)) return words_of(reply);
    if (reply.is(Type::array)) {
      Words said = words_of(reply);
      const bool busy = said.size() == 5 && said[0] == "0";
      EXPECT_TRUE(busy || said.size() == 2) << testing::PrintToString(said);
      said[0] = busy ? "busy" : "permits";
      return said;
    }
    token_ = reply.text;
    EXPECT_EQ(token_.find_first_not_of("0123456789"), std::string::npos) << token_;
    const std::uint64_t token = std::stoull(token_);
    const bool same = std::exchange(tokens_[value], token) == token;
    EXPECT_TRUE(same || token > newest_) << token << " after " << newest_;
    newest_ = std::max(newest_, token);
    return {"token", same ? "same" : "new", token_};
  }

  Reply run(const Script& script, const Words& keys, const Words& arguments) {
    Words words = {"EVAL", std::string(script.text), std::to_string(keys.size())};
    words.insert(words.end(), keys.begin(), keys.end());
    words.insert(words.end(), arguments.begin(), arguments.end());
    return server_.script(words);
  }

  std::uint64_t now_us() {
    const Reply time = server_.command({"TIME"});
    return std::stoull(time.elements.at(0).text) * 1'000'000 + std::stoull(time.elements.at(1).text);
  }

  ScriptServer& server_;
  const std::string steps_;
  const LockKind own_;
  const Keys keys_ = keys_of("dlock:", "scripted");
  const std::array<std::string, 3> publish_ = publish_arguments({}, keys_.lock);
  std::uint64_t newest_;
  std::string token_;
  std::map<std::string, std::uint64_t> tokens_;
};

}  // namespace

void run_rule(const ScriptRule& rule, ScriptServer& server) {
  Runner(rule, server).run();
}

}  // namespace dlock::redis
