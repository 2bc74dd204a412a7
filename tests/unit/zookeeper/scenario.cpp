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

// --- Words about acquires --------------------------------------------------------------------------------------------

AcquireScript::AcquireScript(std::string query) : Script(engine, ensemble, &host), query_(std::move(query)) {
  add_words();
  add_expectations();
  make_backend();
  if (!ephemeral()) (void)ensemble.put(parent);
  (void)contend(*backend, {.name = "warm-up"});
}

void AcquireScript::add_words() {
  // --- Acquires: NAME [shared] [PERMITS] [elsewhere]: of a different lock ---
  words_["start"] = [this](Words& words) { begin(words, true); };
  words_["wait"] = [this](Words& words) { begin(words, true), engine.run(); };
  words_["try"] = [this](Words& words) { begin(words, false), engine.run(); };
  words_["give_up"] = [this](Words& words) {  // as a client's core does
    Attempt& attempt = *attempts_.at(Script::next(words));
    attempt.contention.reset();
    if (attempt.grant) backend->release(*attempt.grant, [](const ReleaseOutcome&) {});
  };
  words_["release"] = [this](Words& words) { release(words); };  // NAME [pending|not_owner|failed CODE]
  words_["fresh"] = [this](Words& words) {                       // [PATH]: a client that is not connected
    attempts_.clear();
    path_ = Script::next(words);
    make_backend();
  };
  words_["close"] = [this](Words&) { backend->close([this] { is_closed_ = true; }); };
  words_["observe"] = [this](Words&) {  // the election
    observing_ = backend->watch(LockKind::election, "lock", [this] {
      ++notified_;
      notified_at_ = ensemble.requests.size();
    });
    execute("settle");
  };
  words_["settle"] = [this](Words&) {
    engine.run();
    notified_ = 0;
  };
  words_["stop_observing"] = [this](Words&) { observing_.reset(); };
  // --- The tree, as other clients change it. A path may be `place`, `own` or ./CHILD, too ---
  words_["as"] = [this](Words& words) {  // KIND of lock, from here on
    kind_ = kinds.at(Script::next(words));
    place_ = lock_path("/dlock", "lock", kind_);
  };
  words_["member"] = [this](Words& words) {  // NAME: the holder, with strategy=ephemeral
    names_[Script::next(words)] = ephemeral() ? ensemble.put(place_, "other:2:x", 77).path : put_node(place_, marker());
  };
  words_["reader"] = [this](Words& words) { names_[Script::next(words)] = put_node(place_, "-__READ__"); };
  words_["writer"] = [this](Words& words) { names_[Script::next(words)] = put_node(place_, "-__WRIT__"); };
  words_["permit"] = [this](Words& words) {  // NAME, of how many
    const std::string name = Script::next(words);
    names_[name] = put_node(place_, "-permit-of-" + Script::next(words) + "-");
  };
  words_["twin"] = [this](Words& words) {  // NAME, of the number NUMBER
    const std::string name = Script::next(words);
    char digits[16];
    (void)std::snprintf(digits, sizeof digits, "%010d", std::stoi(Script::next(words)));
    const std::string first = place_ + "/_c_00000000-0000-4000-8000-000000000001" + marker();
    names_[name] = ensemble.put(first + digits, "other:2:x", 77).path;
  };
  words_["late"] = [this](Words&) {  // the last create is carried out for a session that has been given up
    const auto create = std::find_if(ensemble.requests.rbegin(), ensemble.requests.rend(),
                                     [](const FakeRequest& request) { return request.kind == Kind::create; });
    names_["late"] = ensemble.put(create->path, create->data, 77, true).path;
  };
  words_["remember"] = [this](Words& words) {  // our own node, under a NAME
    ASSERT_FALSE(own().empty());
    names_[Script::next(words)] = own().back();
  };
  words_["sequence"] = [this](Words& words) { ensemble.set_sequence(place_, std::stoll(Script::next(words))); };
}

void AcquireScript::add_expectations() {
  words_["own"] = [this](Words& words) { EXPECT_TRUE(is_in(own().size(), Script::next(words))); };
  words_["children"] = [this](Words& words) {
    EXPECT_TRUE(is_in(ensemble.children(place_).size(), Script::next(words)));
  };
  words_["same"] = [this](Words& words) {  // our only node is the one that was remembered
    EXPECT_EQ(own(), std::vector{path(Script::next(words))});
  };
  words_["other"] = [this](Words& words) {
    ASSERT_EQ(own().size(), 1U);
    EXPECT_NE(own()[0], path(Script::next(words)));
  };
  words_["notified"] = [this](Words&) { EXPECT_GT(std::exchange(notified_, 0), 0U); };  // since the last time
  words_["not_notified"] = [this](Words&) { EXPECT_EQ(notified_, 0U); };
  words_["watched_again"] = [this](Words&) {  // since the mark, and before the observer was notified
    const auto first = ensemble.requests.begin();
    EXPECT_TRUE(std::any_of(first + static_cast<std::ptrdiff_t>(mark_),
                            first + static_cast<std::ptrdiff_t>(notified_at_),
                            [](const FakeRequest& request) { return request.watch != 0; }));
  };
}

// NAME and what is expected of it.
void AcquireScript::other(const std::string& word, Words& words) {
  if (!attempts_.contains(word)) return Script::other(word, words);
  const Attempt& attempt = *attempts_.at(word);
  const std::string what = Script::next(words);
  const bool ended = attempt.grant || attempt.failure;
  if (what == "granted") {
    is_granted(attempt);
  } else if (what == "waits") {
    EXPECT_FALSE(ended) << (attempt.failure ? attempt.failure->detail : "");
  } else if (what == "silent") {
    EXPECT_FALSE(attempt.reported());
  } else if (what == "busy") {
    EXPECT_FALSE(ended);
    EXPECT_TRUE(is_in(static_cast<std::size_t>(attempt.busy_reports), Script::next(words)));
  } else if (what == "unreachable") {  // COUNT [words]
    are_failures(attempt.unreachable_reports, words);
  } else if (what == "reasons") {  // COUNT: different ones, why the service is unreachable
    std::set<std::string> all;
    for (const Failure& why : attempt.unreachable_reports) all.insert(why.detail);
    EXPECT_TRUE(is_in(all.size(), Script::next(words)));
  } else if (what == "told") {  // CODE: of the last report that the service is unreachable
    ASSERT_FALSE(attempt.unreachable_reports.empty());
    EXPECT_TRUE(is_failure(attempt.unreachable_reports.back(), words));
  } else if (what == "failed") {  // CODE [words]
    ASSERT_TRUE(attempt.failure && !attempt.grant);
    EXPECT_TRUE(is_failure(*attempt.failure, words));
  } else if (what == "lasts") {  // DURATION, at least
    EXPECT_GT(attempt.grant.value().valid_until, engine.now() + *duration(Script::next(words)));
  } else if (what == "newer") {  // than another one's: the token
    EXPECT_GT(attempt.grant.value().token, attempts_.at(Script::next(words))->grant.value().token);
  } else {
    ADD_FAILURE() << "unknown word: " << what;
  }
}

void AcquireScript::is_granted(const Attempt& attempt) {
  ASSERT_TRUE(attempt.grant) << (attempt.failure ? attempt.failure->detail : "");
  EXPECT_FALSE(attempt.failure);
  EXPECT_EQ(attempt.grant->kind, kind_);
  // The token is the transaction that made the node, and the node is of the session that stands.
  const std::vector<std::string> nodes = own();
  const bool backed = std::any_of(nodes.begin(), nodes.end(), [&](const std::string& node) {
    return static_cast<std::uint64_t>(ensemble.stat(node).created) == attempt.grant->token.value() &&
           ensemble.stat(node).owner == ensemble.last_session();
  });
  EXPECT_TRUE(backed) << "without a node";
}

void AcquireScript::begin(Words& words, bool wait) {
  const std::string who = Script::next(words);
  Wish wish{.kind = kind_, .wait = wait};
  for (std::string word; words >> word;) {
    if (word == "shared") {
      wish.mode = Mode::shared;
    } else if (word == "elsewhere") {
      wish.name = "other";
    } else {
      wish.permits = static_cast<std::uint32_t>(std::stoul(word));
    }
  }
  Attempt& attempt = *(attempts_[who] = BackendTest::start(*backend, wish));
  attempt.when_granted = [this, &attempt] { EXPECT_FALSE(may_be_over(attempt.grant->valid_until, engine.now())); };
}

// Requests it once; later statements are about the same request.
void AcquireScript::release(Words& words) {
  const std::string who = Script::next(words);
  const std::string expected = Script::next(words);
  if (releases_.try_emplace(who).second) {
    const Attempt& attempt = *attempts_.at(who);
    ASSERT_TRUE(attempt.grant);
    backend->release(*attempt.grant, [this, who](const ReleaseOutcome& outcome) { releases_.at(who) = outcome; });
    if (expected != "now") engine.run();
  }
  if (expected == "now" || expected == "pending") {
    ASSERT_FALSE(releases_.at(who));
    return;
  }
  const auto outcome = releases_.extract(who).mapped();
  ASSERT_TRUE(outcome);
  if (expected == "failed") {
    EXPECT_TRUE(is_failure(outcome->failure, words));
  } else {
    EXPECT_EQ(outcome->status, expected == "not_owner" ? ReleaseStatus::not_owner : ReleaseStatus::released)
        << outcome->failure.detail;
  }
}

std::vector<std::string> AcquireScript::own() const {
  if (!ephemeral()) return own_nodes(place_, kind_);
  const bool is_ours = ensemble.exists(place_) && ensemble.data(place_).starts_with("host:1:test");
  return is_ours ? std::vector{place_} : std::vector<std::string>();
}

std::string AcquireScript::path(const std::string& name) const {
  if (name == "place") return place_;
  if (name == "own") return own().at(0);
  if (name.starts_with("./")) return place_ + name.substr(1);
  return Script::path(name);
}

bool AcquireScript::is_join(const FakeRequest& request) const {
  return request.kind == Kind::create && request.path.starts_with(place_ + "/");
}

std::string AcquireScript::marker() const {
  if (kind_ == LockKind::semaphore) return "-permit-of-1-";
  return kind_ == LockKind::read_write ? "-__WRIT__" : "-lock-";
}

}  // namespace dlock::zookeeper
