#include "scenario.hpp"

#include <cctype>
#include <cstdio>
#include <iterator>

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
                                        {"invalid_argument", errc::invalid_argument},
                                        {"lost", errc::lost},
                                        {"closed", errc::closed}};
const std::map<std::string, LockKind> kinds{{"lock", LockKind::lock},
                                            {"read_write", LockKind::read_write},
                                            {"semaphore", LockKind::semaphore},
                                            {"election", LockKind::election}};
const std::map<std::string, FakeEnsemble::Dialling> diallings{
    {"accept", FakeEnsemble::Dialling::accept},           {"silence", FakeEnsemble::Dialling::silence},
    {"refuse", FakeEnsemble::Dialling::refuse},           {"fail", FakeEnsemble::Dialling::fail},
    {"refuse_auth", FakeEnsemble::Dialling::refuse_auth}, {"require_auth", FakeEnsemble::Dialling::require_auth}};

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

}  // namespace

void PrintTo(const Scenario& scenario, std::ostream* out) {
  *out << scenario.name;
}

std::vector<std::string> expanded(const Scenario& scenario) {
  std::vector<std::string> all;
  expand(scenario.query + std::string("\n") + scenario.script, all);
  return all;
}

// --- Words about an ensemble -----------------------------------------------------------------------------------------

Script::Script(test::ManualEngine& engine, FakeEnsemble& ensemble, test::RecordingHost* host)
    : engine_(engine), ensemble_(ensemble), host_(host) {
  ensemble.fate = [this](const FakeRequest& request) { return decide(request); };
  add_words();
  add_expectations();
}

void Script::run(const std::string& script) {
  for (const std::string& statement : split(script, ';')) execute(statement);
}

void Script::execute(const std::string& statement) {
  SCOPED_TRACE(statement);
  Words words(statement);
  const std::string word = next(words);
  if (word.empty()) return;
  if (const auto time = duration(word)) return engine_.advance(*time);
  const auto found = words_.find(word);
  found == words_.end() ? other(word, words) : found->second(words);
}

void Script::add_words() {
  // --- The tree, as other clients change it ---
  words_["put"] = [this](Words& words) {  // PATH [ephemeral|ours] [numbered] [DATA]
    const std::string where = path(next(words));
    std::int64_t owner = 0;
    bool numbered = false;
    std::string data;
    for (std::string word; words >> word;) {
      if (word == "ephemeral") {
        owner = 77;
      } else if (word == "ours") {
        owner = ensemble_.last_session();
      } else if (word == "numbered") {
        numbered = true;
      } else {
        data = word;
      }
    }
    (void)ensemble_.put(where, data, owner, numbered);
  };
  words_["remove"] = [this](Words& words) { ensemble_.remove(path(next(words))); };
  words_["set"] = [this](Words& words) {
    const std::string where = path(next(words));
    ensemble_.set_data(where, rest(words));
  };
  // --- Answers and connections ---
  // REQUEST[@PATH][+SKIP][*] [FATE] [do STATEMENT, STATEMENT...]
  words_["on"] = [this](Words& words) { hooks_.push_back(hook_of(words)); };
  words_["calm"] = [this](Words&) { hooks_.clear(); };
  words_["release_answers"] = [this](Words&) { ensemble_.release_answers(); };
  words_["disconnect"] = [this](Words&) { ensemble_.disconnect(); };
  words_["reconnect"] = [this](Words&) { ensemble_.reconnect(); };
  words_["reconnects"] = [this](Words& words) {  // DURATION: as the client library, again and again
    for (auto left = *duration(next(words)); left > std::chrono::milliseconds(0);
         left -= std::chrono::milliseconds(5)) {
      ensemble_.reconnect();
      engine_.advance(std::chrono::milliseconds(5));
    }
  };
  words_["expire"] = [this](Words&) { ensemble_.expire(); };
  words_["dial"] = [this](Words& words) { ensemble_.dialling = diallings.at(next(words)); };
  words_["forbid_below"] = [this](Words& words) {  // PATH...
    ensemble_.closed_nodes.clear();
    for (std::string each; words >> each;) ensemble_.closed_nodes.insert(each);
  };
  words_["keep_unsent"] = [this](Words&) { ensemble_.keeps_unsent = true; };
  words_["lose_events"] = [this](Words&) { ensemble_.loses_events = true; };
  words_["keep_events"] = [this](Words&) { ensemble_.loses_events = false; };
  words_["grants"] = [this](Words& words) { ensemble_.granted = duration(next(words)); };  // the session timeout
  words_["answers_after"] = [this](Words& words) { ensemble_.answers_after = *duration(next(words)); };
  words_["silent"] = [this](Words& words) { ensemble_.silent = {next(words)}; };  // HOST
  // --- Time ---
  words_["run"] = [this](Words&) { engine_.run(); };
  words_["tasks"] = [this](Words& words) {
    for (int left = std::stoi(next(words)); left > 0; --left) (void)engine_.run_one();
  };
  words_["sleep"] = [this](Words& words) { engine_.sleep_through(*duration(next(words))); };
  words_["repeat"] = [this](Words& words) {  // COUNT STATEMENT, STATEMENT...
    const int count = std::stoi(next(words));
    const auto statements = split(rest(words), ',');
    for (int i = 0; i < count; ++i) {
      for (const std::string& each : statements) execute(each);
    }
  };
  words_["mark"] = [this](Words&) {  // from where requests and handles count
    mark_ = ensemble_.requests.size();
    dialled_ = ensemble_.dialled;
    closed_ = ensemble_.closed;
  };
}

void Script::add_expectations() {
  words_["asked"] = [this](Words& words) {  // REQUEST COUNT, or a range of counts
    const Hook hook = hook_of(words);
    const auto count =
        std::count_if(ensemble_.requests.begin() + static_cast<std::ptrdiff_t>(mark_), ensemble_.requests.end(),
                      [&](const FakeRequest& request) { return matches(hook, request); });
    EXPECT_TRUE(is_in(static_cast<std::size_t>(count), hook.actions.at(0)));
  };
  words_["sent"] = [this](Words& words) {  // these requests and no others
    std::string is;
    for (const FakeRequest& request : sent()) is += " " + request_names.at(static_cast<std::size_t>(request.kind));
    EXPECT_EQ(is.empty() ? is : is.substr(1), rest(words));
  };
  words_["watched"] = [this](Words& words) {  // these paths and no others
    std::vector<std::string> expected;
    for (std::string name; words >> name;) expected.push_back(path(name));
    std::vector<std::string> is;
    for (const FakeRequest& request : sent()) {
      if (request.watch != 0) is.push_back(request.path);
    }
    EXPECT_EQ(is, expected);
  };
  words_["watches"] = [this](Words& words) { EXPECT_TRUE(is_in(ensemble_.watches(), next(words))); };
  words_["below"] = [this](Words& words) {  // PATH COUNT
    const std::string where = path(next(words));
    EXPECT_TRUE(is_in(ensemble_.children(where).size(), next(words)));
  };
  words_["made_as"] = [this](Words& words) {  // containers would go when the last lock does
    const NodeKind kind = next(words) == "container" ? NodeKind::container : NodeKind::persistent;
    for (const FakeRequest& request : ensemble_.requests) {
      if (request.kind != FakeRequest::Kind::create || request.node == NodeKind::ephemeral_sequential) continue;
      EXPECT_EQ(request.node, kind) << request.path;
      EXPECT_EQ(request.data, "");
    }
  };
  words_["exists"] = [this](Words& words) { EXPECT_TRUE(ensemble_.exists(path(next(words)))); };
  words_["gone"] = [this](Words& words) { EXPECT_FALSE(ensemble_.exists(path(next(words)))); };
  words_["data"] = [this](Words& words) {
    const std::string where = path(next(words));
    EXPECT_EQ(ensemble_.data(where), rest(words));
  };
  words_["dialled"] = [this](Words& words) {
    EXPECT_TRUE(is_in(static_cast<std::size_t>(ensemble_.dialled - dialled_), next(words)));
  };
  words_["closed"] = [this](Words& words) {
    EXPECT_TRUE(is_in(static_cast<std::size_t>(ensemble_.closed - closed_), next(words)));
    EXPECT_EQ(ensemble_.dropped, 0) << "what the servers may have made of it is ended";
  };
  words_["is_closed"] = [this](Words&) { EXPECT_TRUE(is_closed_); };
  words_["is_not_closed"] = [this](Words&) { EXPECT_FALSE(is_closed_); };
  words_["connections"] = [this](Words& words) {  // the reports since the last time
    std::string all;
    for (const auto state : std::exchange(host_->connections, {})) {
      all += state == ConnectionEvent::State::connected ? " connected" : " reconnecting";
    }
    EXPECT_EQ(all.empty() ? all : all.substr(1), rest(words));
  };
  words_["lost"] = [this](Words& words) {  // COUNT [words]
    std::vector<Failure> all;
    for (const auto& loss : host_->losses) all.push_back(loss.why);
    are_failures(all, words);
  };
  words_["warnings"] = [this](Words& words) {  // COUNT [words]
    std::vector<Failure> all;
    for (const auto& warning : host_->warnings) all.push_back(warning.reason);
    are_failures(all, words);
  };
}

Script::Hook Script::hook_of(Words& words) const {
  Hook hook{next(words)};
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
  std::string word = next(words);
  if (fates.contains(word)) {
    hook.fate = fates.at(word);
    word = next(words);
  }
  hook.actions = word == "do" ? split(rest(words), ',') : std::vector{word};
  return hook;
}

Fate Script::decide(const FakeRequest& request) {
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

bool Script::matches(const Hook& hook, const FakeRequest& request) const {
  if (is_heartbeat(request)) return hook.selector == "heartbeat";
  if (!hook.path.empty() && request.path != hook.path) return false;
  if (hook.selector == "any") return true;
  if (hook.selector == "join") return is_join(request);
  if (hook.selector == "watch") return request.watch != 0;
  if (hook.selector == "look") return request.kind == FakeRequest::Kind::get && request.watch == 0;
  return hook.selector == request_names.at(static_cast<std::size_t>(request.kind));
}

std::vector<FakeRequest> Script::sent() const {
  std::vector<FakeRequest> all;
  std::copy_if(ensemble_.requests.begin() + static_cast<std::ptrdiff_t>(mark_), ensemble_.requests.end(),
               std::back_inserter(all), [](const FakeRequest& request) { return !is_heartbeat(request); });
  return all;
}

std::string Script::next(Words& words) {
  std::string word;
  words >> word;
  return word;
}

std::string Script::rest(Words& words) {
  std::string rest;
  std::getline(words >> std::ws, rest, '\0');
  return rest;
}

std::optional<std::chrono::milliseconds> Script::duration(const std::string& word) {
  if (word.empty() || std::isdigit(static_cast<unsigned char>(word[0])) == 0) return std::nullopt;
  std::size_t end = 0;
  const int count = std::stoi(word, &end);
  if (word.substr(end) == "ms") return std::chrono::milliseconds(count);
  return word.substr(end) == "s" ? std::chrono::seconds(count) : std::chrono::minutes(count);
}

testing::AssertionResult Script::is_in(std::size_t count, const std::string& range) {
  const auto dash = range.find('-');
  const std::size_t least = std::stoul(range);
  const std::size_t most = dash == std::string::npos ? least : std::stoul(range.substr(dash + 1));
  if (count >= least && count <= most) return testing::AssertionSuccess();
  return testing::AssertionFailure() << count << " instead of " << range;
}

testing::AssertionResult Script::is_failure(const Failure& why, Words& words) {
  const bool is = why.code == codes.at(next(words)) && why.detail.find(rest(words)) != std::string::npos;
  return (is ? testing::AssertionSuccess() : testing::AssertionFailure()) << why.code.message() << ": " << why.detail;
}

void Script::are_failures(const std::vector<Failure>& all, Words& words) {
  ASSERT_TRUE(is_in(all.size(), next(words)));
  if (all.empty()) return;
  EXPECT_NE(all.back().detail.find(rest(words)), std::string::npos) << all.back().detail;
}

// --- Words about a client --------------------------------------------------------------------------------------------

BackendScript::BackendScript(std::string query) : Script(engine, ensemble, &host), query_(std::move(query)) {
  backend = make(query_);
  words_["fresh"] = [this](Words& words) { backend = make(query_, next(words)); };  // [HOSTS][PATH]
  words_["close"] = [this](Words&) { backend->close([this] { is_closed_ = true; }); };
  words_["as"] = [this](Words& words) {  // KIND of lock, from here on
    kind_ = kinds.at(next(words));
    place_ = lock_path("/dlock", "lock", kind_);
  };
}

std::string BackendScript::path(const std::string& name) const {
  if (name == "place") return place_;
  return name.starts_with("./") ? place_ + name.substr(1) : Script::path(name);
}

}  // namespace dlock::zookeeper
