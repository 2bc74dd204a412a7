#include "scenario.hpp"

#include <cctype>
#include <cstdio>
#include <iterator>

#include "tests/unit/support/reports.hpp"

namespace dlock::zookeeper {

namespace {

const std::vector<std::string> request_names{"create", "set", "get", "exists", "children", "remove", "sync"};
const std::map<std::string, Fate> fates{
    {"answer", Fate::answer},    {"lose_answer", Fate::lose_answer}, {"lose_request", Fate::lose_request},
    {"hold", Fate::hold_answer}, {"refuse", Fate::refuse},           {"forbid", Fate::forbid}};
const std::map<std::string, errc> codes{{"unavailable", errc::unavailable},
                                        {"ambiguous", errc::ambiguous},
                                        {"access_denied", errc::access_denied},
                                        {"protocol", errc::protocol},
                                        {"invalid_argument", errc::invalid_argument}};
const std::map<std::string, LockKind> kinds{{"lock", LockKind::lock},
                                            {"read_write", LockKind::read_write},
                                            {"semaphore", LockKind::semaphore},
                                            {"election", LockKind::election}};
const std::map<std::string, FakeEnsemble::Dialling> diallings{{"accept", FakeEnsemble::Dialling::accept},
                                                              {"silence", FakeEnsemble::Dialling::silence},
                                                              {"refuse_auth", FakeEnsemble::Dialling::refuse_auth}};

std::string next_word(std::istream& words) {
  std::string word;
  words >> word;
  return word;
}
std::string rest_of(std::istream& words) {
  std::string rest;
  std::getline(words >> std::ws, rest, '\0');
  return rest;
}
std::vector<std::string> split(const std::string& text, char by) {
  std::vector<std::string> parts;
  std::istringstream in(text);
  for (std::string part; std::getline(in, part, by);) parts.push_back(part);
  if (text.empty() || text.back() == by) parts.emplace_back();
  return parts;
}

std::vector<std::string> alternatives(const std::string& group) {
  const auto range = group.find("..");
  if (range == std::string::npos) return split(group, '|');
  std::vector<std::string> all;
  for (int i = std::stoi(group); i <= std::stoi(group.substr(range + 2)); ++i) all.push_back(std::to_string(i));
  return all;
}
void expand(const std::string& text, std::vector<std::string>& all) {
  const auto begin = text.find('{');
  if (begin == std::string::npos) return all.push_back(text);
  const std::string group = text.substr(begin, text.find('}') + 1 - begin);
  for (const std::string& each : alternatives(group.substr(1, group.size() - 2))) {
    std::string one = text;
    for (auto at = begin; at != std::string::npos; at = one.find(group, at)) one.replace(at, group.size(), each);
    expand(one, all);
  }
}

std::optional<std::chrono::milliseconds> duration(const std::string& word) {
  if (word.empty() || std::isdigit(static_cast<unsigned char>(word[0])) == 0) return std::nullopt;
  std::size_t end = 0;
  const int count = std::stoi(word, &end);
  if (word.substr(end) == "ms") return std::chrono::milliseconds(count);
  return word.substr(end) == "s" ? std::chrono::seconds(count) : std::chrono::minutes(count);
}

// Of "3", or "2-4".
testing::AssertionResult is_in(std::size_t count, const std::string& range) {
  const auto dash = range.find('-');
  const std::size_t least = std::stoul(range);
  const std::size_t most = dash == std::string::npos ? least : std::stoul(range.substr(dash + 1));
  if (count >= least && count <= most) return testing::AssertionSuccess();
  return testing::AssertionFailure() << count << " instead of " << range;
}

}  // namespace

void PrintTo(const Scenario& scenario, std::ostream* out) {
  *out << scenario.name;
}

void run_scenario(const Scenario& scenario) {
  std::vector<std::string> all;
  expand(scenario.query + std::string("\n") + scenario.script, all);
  for (const std::string& each : all) {
    SCOPED_TRACE(each);
    const auto script = each.find('\n');
    ScenarioRun(each.substr(0, script)).run(each.substr(script + 1));
  }
}

ScenarioRun::ScenarioRun(std::string query) : query_(std::move(query)) {
  ensemble.fate = [this](const FakeRequest& request) { return decide(request); };
  connect();
}

void ScenarioRun::connect() {
  backend = make(query_);
  if (query_.find("ephemeral") == std::string::npos) (void)ensemble.put(parent);
  (void)BackendTest::contend(*backend, true, "warm-up");
}

void ScenarioRun::run(const std::string& script) {
  for (const std::string& statement : split(script, ';')) execute(statement);
}

void ScenarioRun::execute(const std::string& statement) {
  SCOPED_TRACE(statement);
  Words words(statement);
  const std::string word = next_word(words);
  if (word.empty()) return;
  if (const auto time = duration(word)) return engine.advance(*time);
  if (act(word, words) || expect(word, words)) return;
  if (attempts_.contains(word)) return expect_of(word, words);
  ADD_FAILURE() << "unknown word";
}

bool ScenarioRun::act(const std::string& word, Words& words) {
  const std::map<std::string, std::function<void()>> actions{
      // --- Acquires: NAME [shared] [PERMITS] ---
      {"wait", [&] { contend(next_word(words), words, true, true); }},
      {"try", [&] { contend(next_word(words), words, false, true); }},
      {"start", [&] { contend(next_word(words), words, true, false); }},
      {"start_try", [&] { contend(next_word(words), words, false, false); }},
      {"give_up", [&] { attempts_.at(next_word(words))->contention.reset(); }},
      {"release",
       [&] {
         const Attempt& attempt = *attempts_.at(next_word(words));
         ASSERT_TRUE(attempt.grant);
         EXPECT_EQ(BackendTest::release(*backend, attempt)->status, ReleaseStatus::released);
       }},
      // --- The tree, as other clients change it. A path is `place`, `own`, ./CHILD, /PATH or a name given before ---
      {"as",  // KIND of lock, from here on
       [&] {
         kind_ = kinds.at(next_word(words));
         place_ = lock_path("/dlock", "lock", kind_);
       }},
      {"member", [&] { names_[next_word(words)] = put_node(place_, marker()); }},
      {"reader", [&] { names_[next_word(words)] = put_node(place_, "-__READ__"); }},
      {"writer", [&] { names_[next_word(words)] = put_node(place_, "-__WRIT__"); }},
      {"permit",  // NAME, of how many
       [&] {
         const std::string name = next_word(words);
         names_[name] = put_node(place_, "-permit-of-" + next_word(words) + "-");
       }},
      {"put", [&] { put(words); }},  // PATH [ephemeral] [numbered] [DATA]
      {"twin",                       // NAME, of the number NUMBER
       [&] {
         const std::string name = next_word(words);
         char digits[16];
         (void)std::snprintf(digits, sizeof digits, "%010d", std::stoi(next_word(words)));
         const std::string first = place_ + "/_c_00000000-0000-4000-8000-000000000001" + marker();
         names_[name] = ensemble.put(first + digits, "other:2:x", 77).path;
       }},
      {"remove", [&] { ensemble.remove(path(next_word(words))); }},
      {"set",
       [&] {
         const std::string where = path(next_word(words));
         ensemble.set_data(where, rest_of(words));
       }},
      {"remember",  // our own node, under a NAME
       [&] {
         ASSERT_FALSE(own().empty());
         names_[next_word(words)] = own().back();
       }},
      {"sequence", [&] { ensemble.set_sequence(place_, std::stoll(next_word(words))); }},
      // --- Answers and connections ---
      {"on", [&] { add_hook(words); }},  // REQUEST[@PATH][+SKIP][*] [FATE] [do STATEMENT, STATEMENT...]
      {"calm", [&] { hooks_.clear(); }},
      {"release_answers", [&] { ensemble.release_answers(); }},
      {"disconnect", [&] { ensemble.disconnect(); }},
      {"reconnect", [&] { ensemble.reconnect(); }},
      {"expire", [&] { ensemble.expire(); }},
      {"dial", [&] { ensemble.dialling = diallings.at(next_word(words)); }},
      {"fresh",  // a client that is not connected
       [&] {
         attempts_.clear();
         backend = make(query_);
       }},
      {"keep_unsent", [&] { ensemble.keeps_unsent = true; }},
      {"lose_events", [&] { ensemble.loses_events = true; }},
      {"keep_events", [&] { ensemble.loses_events = false; }},
      // --- Time ---
      {"run", [&] { engine.run(); }},
      {"tasks",
       [&] {
         for (int left = std::stoi(next_word(words)); left > 0; --left) (void)engine.run_one();
       }},
      {"sleep", [&] { engine.sleep_through(*duration(next_word(words))); }},
      {"until_loss",
       [&] {
         while (host.losses.empty()) engine.advance(1ms);
       }},
      {"mark", [&] { mark_ = ensemble.requests.size(); }},  // from where requests count
  };
  const auto found = actions.find(word);
  if (found == actions.end()) return false;
  found->second();
  return true;
}

bool ScenarioRun::expect(const std::string& word, Words& words) {
  const std::map<std::string, std::function<void()>> expectations{
      // REQUEST COUNT, or a range of counts
      {"asked",
       [&] {
         const std::string selector = next_word(words);
         const auto all = sent();
         const auto count = static_cast<std::size_t>(std::count_if(
             all.begin(), all.end(), [&](const FakeRequest& request) { return matches({selector}, request); }));
         EXPECT_TRUE(is_in(count, next_word(words)));
       }},
      {"questions",  // until the last grant
       [&] {
         const auto first = ensemble.requests.begin();
         const auto count = std::count_if(
             first + static_cast<std::ptrdiff_t>(mark_), first + static_cast<std::ptrdiff_t>(granted_at_),
             [&](const auto& request) { return request.kind == Kind::get && request.path.starts_with(place_); });
         EXPECT_TRUE(is_in(static_cast<std::size_t>(count), next_word(words)));
       }},
      {"sent",  // these requests and no others
       [&] {
         std::string is;
         for (const FakeRequest& request : sent()) is += " " + request_names.at(static_cast<std::size_t>(request.kind));
         EXPECT_EQ(is.empty() ? is : is.substr(1), rest_of(words));
       }},
      {"watched",  // these paths and no others
       [&] {
         std::vector<std::string> expected;
         for (std::string name; words >> name;) expected.push_back(path(name));
         std::vector<std::string> is;
         for (const FakeRequest& request : sent()) {
           if (request.watch != 0) is.push_back(request.path);
         }
         EXPECT_EQ(is, expected);
       }},
      {"watches", [&] { EXPECT_TRUE(is_in(ensemble.watches(), next_word(words))); }},
      {"exists", [&] { EXPECT_TRUE(ensemble.exists(path(next_word(words)))); }},
      {"gone", [&] { EXPECT_FALSE(ensemble.exists(path(next_word(words)))); }},
      {"own", [&] { EXPECT_TRUE(is_in(own().size(), next_word(words))); }},
      {"children", [&] { EXPECT_TRUE(is_in(ensemble.children(place_).size(), next_word(words))); }},
      {"same",  // our only node is the one that was remembered
       [&] { EXPECT_EQ(own(), std::vector{path(next_word(words))}); }},
      {"other",
       [&] {
         ASSERT_EQ(own().size(), 1U);
         EXPECT_NE(own()[0], path(next_word(words)));
       }},
      {"data",
       [&] {
         const std::string where = path(next_word(words));
         EXPECT_EQ(ensemble.data(where), rest_of(words));
       }},
      {"disconnected", [&] { EXPECT_TRUE(disconnected()); }},
      {"warnings",
       [&] {
         ASSERT_TRUE(is_in(host.warnings.size(), next_word(words)));
         if (host.warnings.empty()) return;
         EXPECT_EQ(host.warnings[0].name, "lock");
         EXPECT_NE(host.warnings[0].reason.detail.find(rest_of(words)), std::string::npos);
       }},
  };
  const auto found = expectations.find(word);
  if (found == expectations.end()) return false;
  found->second();
  return true;
}

void ScenarioRun::expect_of(const std::string& who, Words& words) {
  const Attempt& attempt = *attempts_.at(who);
  const std::string what = next_word(words);
  if (what == "granted") {
    ASSERT_TRUE(attempt.grant) << (attempt.failure ? attempt.failure->detail : "");
    EXPECT_FALSE(attempt.failure);
    EXPECT_EQ(attempt.grant->kind, kind_);
    // The token is the transaction that made the node, and the node is of the session that stands.
    std::vector<std::string> nodes = own();
    if (ensemble.exists(place_) && ensemble.stat(place_).owner != 0) nodes.push_back(place_);
    const bool backed = std::any_of(nodes.begin(), nodes.end(), [&](const std::string& node) {
      return static_cast<std::uint64_t>(ensemble.stat(node).created) == attempt.grant->token.value() &&
             ensemble.stat(node).owner == ensemble.last_session();
    });
    EXPECT_TRUE(backed) << "without a node";
  } else if (what == "waits") {
    EXPECT_FALSE(attempt.grant || attempt.failure) << (attempt.failure ? attempt.failure->detail : "");
  } else if (what == "silent") {
    EXPECT_FALSE(attempt.reported());
  } else if (what == "busy") {
    EXPECT_FALSE(attempt.grant || attempt.failure);
    EXPECT_TRUE(is_in(static_cast<std::size_t>(attempt.busy_reports), next_word(words)));
  } else if (what == "unreachable") {  // COUNT [words of the last one]
    ASSERT_TRUE(is_in(attempt.unreachable_reports.size(), next_word(words)));
    if (attempt.unreachable_reports.empty()) return;
    EXPECT_NE(attempt.unreachable_reports.back().detail.find(rest_of(words)), std::string::npos)
        << attempt.unreachable_reports.back().detail;
  } else if (what == "told") {  // CODE: of the last report that the service is unreachable
    ASSERT_FALSE(attempt.unreachable_reports.empty());
    EXPECT_EQ(attempt.unreachable_reports.back().code, codes.at(next_word(words)));
  } else if (what == "failed") {  // CODE [words]
    const errc code = codes.at(next_word(words));
    EXPECT_FALSE(attempt.grant);
    EXPECT_TRUE(failed(attempt, code, rest_of(words)));
  } else if (what == "newer") {  // than another one's: the token
    EXPECT_GT(attempt.grant.value().token, attempts_.at(next_word(words))->grant.value().token);
  } else {
    ADD_FAILURE() << "unknown word";
  }
}

void ScenarioRun::contend(const std::string& who, Words& words, bool wait, bool runs) {
  Wish wish{.kind = kind_, .wait = wait};
  for (std::string word; words >> word;) {
    if (word == "shared") {
      wish.mode = Mode::shared;
    } else {
      wish.permits = static_cast<std::uint32_t>(std::stoul(word));
    }
  }
  Attempt& attempt = *(attempts_[who] = BackendTest::start(*backend, wish));
  attempt.when_granted = [this, &attempt] {
    EXPECT_FALSE(may_be_over(attempt.grant->valid_until, engine.now()));
    granted_at_ = ensemble.requests.size();
  };
  if (runs) engine.run();
}

void ScenarioRun::put(Words& words) {
  const std::string where = path(next_word(words));
  std::int64_t owner = 0;
  bool numbered = false;
  std::string data;
  for (std::string word; words >> word;) {
    if (word == "ephemeral") {
      owner = 77;
    } else if (word == "numbered") {
      numbered = true;
    } else {
      data = word;
    }
  }
  (void)ensemble.put(where, data, owner, numbered);
}

void ScenarioRun::add_hook(Words& words) {
  Hook hook{next_word(words)};
  if (hook.selector.ends_with('*')) {
    hook.forever = true;
    hook.selector.pop_back();
  }
  if (const auto skip = hook.selector.find('+'); skip != std::string::npos) {
    hook.skip = std::stoi(hook.selector.substr(skip));
    hook.selector.resize(skip);
  }
  if (const auto at = hook.selector.find('@'); at != std::string::npos) {
    hook.path = path(hook.selector.substr(at + 1));
    hook.selector.resize(at);
  }
  std::string word = next_word(words);
  if (fates.contains(word)) {
    hook.fate = fates.at(word);
    word = next_word(words);
  }
  if (word == "do") hook.actions = split(rest_of(words), ',');
  hooks_.push_back(std::move(hook));
}

Fate ScenarioRun::decide(const FakeRequest& request) {
  for (auto hook = hooks_.begin(); hook != hooks_.end(); ++hook) {
    if (!matches(*hook, request)) continue;
    if (hook->skip-- > 0) continue;
    const Hook found = *hook;
    if (!found.forever) hooks_.erase(hook);
    for (const std::string& action : found.actions) execute(action);
    return found.fate;
  }
  return Fate::answer;
}

bool ScenarioRun::matches(const Hook& hook, const FakeRequest& request) const {
  if (is_heartbeat(request)) return hook.selector == "heartbeat";
  if (!hook.path.empty() && request.path != hook.path) return false;
  if (hook.selector == "any") return true;
  if (hook.selector == "join") return request.kind == Kind::create && request.path.starts_with(place_ + "/");
  if (hook.selector == "watch") return request.watch != 0;
  if (hook.selector == "look") return request.kind == Kind::get && request.watch == 0;
  return hook.selector == request_names.at(static_cast<std::size_t>(request.kind));
}

std::string ScenarioRun::path(const std::string& name) const {
  if (name == "place") return place_;
  if (name == "own") return own().at(0);
  if (name.starts_with("./")) return place_ + name.substr(1);
  return name.starts_with("/") ? name : names_.at(name);
}

std::vector<FakeRequest> ScenarioRun::sent() const {
  std::vector<FakeRequest> all;
  std::copy_if(ensemble.requests.begin() + static_cast<std::ptrdiff_t>(mark_), ensemble.requests.end(),
               std::back_inserter(all), [](const FakeRequest& request) { return !is_heartbeat(request); });
  return all;
}

std::string ScenarioRun::marker() const {
  if (kind_ == LockKind::semaphore) return "-permit-of-1-";
  return kind_ == LockKind::read_write ? "-__WRIT__" : "-lock-";
}

}  // namespace dlock::zookeeper
