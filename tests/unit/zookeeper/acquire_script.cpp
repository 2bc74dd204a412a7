// Words about acquires of a client.
#include <cstdio>

#include "scenario.hpp"

namespace dlock::zookeeper {
namespace {

class AcquireScript final : public BackendScript {
 public:
  explicit AcquireScript(std::string query) : BackendScript(std::move(query)) {
    add_words();
    add_expectations();
    if (!ephemeral()) (void)ensemble.put(parent);
    (void)contend(*backend, {.name = "warm-up"});
  }

 private:
  void add_words() {
    // --- Acquires: NAME [shared] [PERMITS] [elsewhere|zookeeper]: of a different lock ---
    words_["start"] = [this](Words& words) { begin(words, true); };
    words_["wait"] = [this](Words& words) { begin(words, true), engine.run(); };
    words_["try"] = [this](Words& words) { begin(words, false), engine.run(); };
    words_["give_up"] = [this](Words& words) {  // as a client's core does
      Attempt& attempt = *attempts_.at(next(words));
      attempt.contention.reset();
      if (attempt.grant) backend->release(*attempt.grant, [](const ReleaseOutcome&) {});
    };
    words_["release"] = [this](Words& words) { release(words); };  // NAME [pending|not_owner|failed CODE]
    words_["fresh"] = [this, fresh = words_["fresh"]](Words& words) {
      attempts_.clear();
      fresh(words);
    };
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
    // --- The tree, as other clients change it. A path may be `own`, too ---
    words_["member"] = [this](Words& words) {  // NAME: the holder, with strategy=ephemeral
      names_[next(words)] = ephemeral() ? ensemble.put(place_, "other:2:x", 77).path : put_node(place_, marker());
    };
    words_["reader"] = [this](Words& words) { names_[next(words)] = put_node(place_, "-__READ__"); };
    words_["writer"] = [this](Words& words) { names_[next(words)] = put_node(place_, "-__WRIT__"); };
    words_["permit"] = [this](Words& words) {  // NAME, of how many
      const std::string name = next(words);
      names_[name] = put_node(place_, "-permit-of-" + next(words) + "-");
    };
    words_["twin"] = [this](Words& words) {  // NAME, of the number NUMBER
      const std::string name = next(words);
      char digits[16];
      (void)std::snprintf(digits, sizeof digits, "%010d", std::stoi(next(words)));
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
      names_[next(words)] = own().back();
    };
    words_["sequence"] = [this](Words& words) { ensemble.set_sequence(place_, std::stoll(next(words))); };
  }

  void add_expectations() {
    words_["own"] = [this](Words& words) { EXPECT_TRUE(is_in(own().size(), next(words))); };
    words_["same"] = [this](Words& words) {  // our only node is the one that was remembered
      EXPECT_EQ(own(), std::vector{path(next(words))});
    };
    words_["other"] = [this](Words& words) {
      ASSERT_EQ(own().size(), 1U);
      EXPECT_NE(own()[0], path(next(words)));
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
  void other(const std::string& word, Words& words) override {
    if (!attempts_.contains(word)) return Script::other(word, words);
    const Attempt& attempt = *attempts_.at(word);
    const std::string what = next(words);
    const bool ended = attempt.grant || attempt.failure;
    if (what == "granted") {
      is_granted(attempt);
    } else if (what == "waits") {
      EXPECT_FALSE(ended) << (attempt.failure ? attempt.failure->detail : "");
    } else if (what == "silent") {
      EXPECT_FALSE(attempt.reported());
    } else if (what == "busy") {
      EXPECT_FALSE(ended);
      EXPECT_TRUE(is_in(static_cast<std::size_t>(attempt.busy_reports), next(words)));
    } else if (what == "unreachable") {  // COUNT [words]
      are_failures(attempt.unreachable_reports, words);
    } else if (what == "reasons") {  // COUNT: different ones, why the service is unreachable
      std::set<std::string> all;
      for (const Failure& why : attempt.unreachable_reports) all.insert(why.detail);
      EXPECT_TRUE(is_in(all.size(), next(words)));
    } else if (what == "told") {  // CODE: of the last report that the service is unreachable
      ASSERT_FALSE(attempt.unreachable_reports.empty());
      EXPECT_TRUE(is_failure(attempt.unreachable_reports.back(), words));
    } else if (what == "failed") {  // CODE [words]
      ASSERT_TRUE(attempt.failure && !attempt.grant);
      EXPECT_TRUE(is_failure(*attempt.failure, words));
    } else if (what == "lasts") {  // DURATION, at least, [DURATION, at most]
      const auto left = attempt.grant.value().valid_until - engine.now();
      EXPECT_GT(left, *duration(next(words)));
      EXPECT_LE(left, duration(next(words)).value_or(1h));
    } else if (what == "lease") {  // DURATION
      EXPECT_EQ(attempt.grant.value().lease, *duration(next(words)));
    } else if (what == "newer") {  // than another one's: the token
      EXPECT_GT(attempt.grant.value().token, attempts_.at(next(words))->grant.value().token);
    } else {
      ADD_FAILURE() << "unknown word: " << what;
    }
  }

  void is_granted(const Attempt& attempt) {
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

  void begin(Words& words, bool wait) {
    const std::string who = next(words);
    Wish wish{.wait = wait, .kind = kind_};
    for (std::string word; words >> word;) {
      if (word == "shared") {
        wish.mode = Mode::shared;
      } else if (word == "elsewhere" || word == "zookeeper") {
        wish.name = word;
      } else {
        wish.permits = static_cast<std::uint32_t>(std::stoul(word));
      }
    }
    Attempt& attempt = *(attempts_[who] = BackendTest::start(*backend, wish));
    attempt.when_granted = [this, &attempt] { EXPECT_FALSE(may_be_over(attempt.grant->valid_until, engine.now())); };
  }

  // Requests it once; later statements are about the same request.
  void release(Words& words) {
    const std::string who = next(words);
    const std::string expected = next(words);
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

  [[nodiscard]] std::vector<std::string> own() const {
    if (!ephemeral()) return own_nodes(place_, kind_);
    const bool is_ours = ensemble.exists(place_) && ensemble.data(place_).starts_with("host:1:test");
    return is_ours ? std::vector{place_} : std::vector<std::string>();
  }
  [[nodiscard]] std::string path(const std::string& name) const override {
    return name == "own" ? own().at(0) : BackendScript::path(name);
  }
  [[nodiscard]] bool is_join(const FakeRequest& request) const override {
    return request.kind == Kind::create && request.path.starts_with(place_ + "/");
  }
  [[nodiscard]] std::string marker() const {
    if (kind_ == LockKind::semaphore) return "-permit-of-1-";
    return kind_ == LockKind::read_write ? "-__WRIT__" : "-lock-";
  }
  [[nodiscard]] bool ephemeral() const { return query_.find("ephemeral") != std::string::npos; }

  std::unique_ptr<Watch> observing_;
  std::size_t notified_ = 0;
  std::size_t notified_at_ = 0;  // how many requests were sent before
  std::map<std::string, std::unique_ptr<Attempt>> attempts_;
  std::map<std::string, std::optional<ReleaseOutcome>> releases_;  // requested, and not looked at since
};

}  // namespace

void run_scenario(const Scenario& scenario, const std::string& options) {
  run_scenario<AcquireScript>(scenario, options);
}

}  // namespace dlock::zookeeper
