#include "backends/redis/administration/inspection.hpp"

#include <chrono>
#include <memory>
#include <optional>
#include <set>
#include <utility>

#include "backends/common/survey.hpp"
#include "backends/redis/connection/server_error.hpp"
#include "backends/redis/requests/answers.hpp"
#include "backends/redis/requests/keys.hpp"
#include "backends/redis/requests/release_request.hpp"
#include "backends/redis/requests/scripts.hpp"
#include "util/duration_text.hpp"
#include "util/names.hpp"

namespace dlock::redis {

using Type = Reply::Type;

namespace {

void inspect_by(Topology& topology, LockKind kind, const std::string& name, TimePoint deadline,
                Backend::Handler<LockInfo> done) {
  const std::string key = lock_key(topology.options(), name, kind);
  const bool queues = topology.options().strategy == Strategy::queue;
  (void)topology.send(
      key, {.script = &inspect_script(kind), .words = with_keys(key, {Key::lock, Key::queue, Key::fence})}, deadline,
      [kind, queues, name, done = std::move(done)](Node*, const Result<Reply>& reply, TimePoint) {
        if (!reply.ok()) return done(unanswered_question(reply.failure()));
        auto info = read_inspect(reply.value(), name, kind);
        // With a different strategy, this client's waiters are not in the queue.
        if (info.ok() && !queues) info.value().waiters.reset();
        done(std::move(info));
      });
}

// Answers with the name if it was removed.
void forget_by(Topology& topology, LockKind kind, const std::string& name, std::chrono::nanoseconds idle,
               TimePoint deadline, Backend::Handler<std::optional<LockInfo>> done) {
  const std::string key = lock_key(topology.options(), name, kind);
  Command words = with_keys(key, {Key::lock, Key::queue, Key::fence});
  words.add(std::to_string(std::chrono::ceil<std::chrono::microseconds>(idle).count()));
  (void)topology.send(key, {.script = &forget_script(kind), .words = std::move(words)}, deadline,
                      [name, done = std::move(done)](Node*, const Result<Reply>& reply, TimePoint) {
                        if (!reply.ok()) return done(reply.failure());
                        const auto removed = read_forget(reply.value());
                        if (!removed.ok()) return done(removed.failure());
                        done(removed.value() ? std::optional(LockInfo{.name = name}) : std::nullopt);
                      });
}

std::vector<std::string> names_of(const std::vector<LockInfo>& infos) {
  std::vector<std::string> names;
  names.reserve(infos.size());
  for (const LockInfo& info : infos) names.push_back(info.name);
  return names;
}

// Finds the names by SCAN, which does not block the server for long as KEYS does, and inspects or forgets each. In a
// cluster, it scans the masters one after the other.
//
// SCAN visits all keys of the database, those of other programs included. If that takes too long, nothing is listed,
// because it is unknown what is missing. The last query is sent early enough to be answered by the deadline.
class Listing : public std::enable_shared_from_this<Listing> {
 public:
  // idle: forget the names that were last acquired at least so long ago.
  Listing(Topology& topology, LockKind kind, std::optional<std::chrono::nanoseconds> idle,
          Backend::Handler<std::vector<LockInfo>> done)
      : topology_(topology),
        space_(kind),
        prefix_(prefix_of(topology.options().prefix, kind)),
        idle_(idle),
        done_(std::move(done)),
        deadline_(topology.answer_by()),
        last_question_(deadline_ - topology.options().response_timeout / 4),
        pattern_("*" + escape_pattern(prefix_) +
                 (idle          ? "*dlf"
                  : shows_all() ? "*"
                                : "dlf")) {}

  void start() {
    topology_.masters(deadline_, [self = shared_from_this()](Result<std::vector<common::Host>> masters) {
      if (!masters.ok()) return self->done_(unanswered_question(masters.failure()));
      self->to_scan_ = std::move(masters.value());
      self->scan_next();
    });
  }

 private:
  static constexpr std::size_t max_names = 100'000;

  void scan_next() {
    if (to_scan_.empty()) return scanned_all();
    at_ = std::move(to_scan_.back());
    to_scan_.pop_back();
    scan("0");
  }

  void scan(const std::string& cursor) {
    if (const auto why = too_late()) return end_early(*why);
    Node* const node = topology_.master_at(at_);
    if (node == nullptr) {
      return end_early({errc::unavailable, at_.to_string() + " has no slots of the cluster any more; try again"});
    }
    (void)node->commands().request({"SCAN", cursor, "MATCH", pattern_, "COUNT", "1000"}, deadline_,
                                   [self = shared_from_this()](Result<Reply> reply, TimePoint) {
                                     if (!reply.ok()) return self->done_(unanswered_question(reply.failure()));
                                     self->scanned(reply.value());
                                   });
  }

  void scanned(const Reply& reply) {
    const auto& fields = reply.elements;
    if (!reply.is(Type::array) || fields.size() != 2 || !fields[0].is(Type::string) || !fields[1].is(Type::array)) {
      return done_(unexpected("SCAN", reply));
    }
    for (const Reply& key : fields[1].elements) {
      if (!key.is(Type::string)) return done_(unexpected("SCAN", reply));
      note(key.text);
    }
    const std::string& cursor = fields[0].text;
    if (!idle_ && names_.size() > max_names) {
      return done_(Failure{errc::unavailable, "more than " + std::to_string(max_names) + " locks; too many to list"});
    }
    if (!idle_) return cursor == "0" ? scan_next() : scan(cursor);
    look_at_names(cursor);
  }

  void scanned_all() {
    if (idle_) return done_(std::move(found_));
    look_at_names({});
  }

  // cursor: for the next SCAN; empty: none follows.
  void look_at_names(const std::string& cursor) {
    common::Survey::run(
        {names_.begin(), names_.end()},
        [self = shared_from_this()](const std::string& name, common::Survey::Answer answer) {
          self->look(name, std::move(answer));
        },
        [self = shared_from_this(), cursor](Result<std::vector<LockInfo>> seen) {
          if (!seen.ok()) return self->done_(seen.failure());
          self->found_.insert(self->found_.end(), seen.value().begin(), seen.value().end());
          self->names_.clear();
          const auto why = self->idle_ ? self->too_late() : std::nullopt;  // then some names were skipped
          if (why) return self->end_early(*why);
          if (!self->idle_) return self->done_(std::move(self->found_));
          cursor == "0" ? self->scan_next() : self->scan(cursor);
        });
  }

  // If some names were forgotten, reports them instead of the failure.
  void end_early(const Failure& why) {
    if (found_.empty()) return done_(why);
    done_(std::move(found_));
  }

  // With a prefix, all keys below it are shown, locks of other libraries included.
  [[nodiscard]] bool shows_all() const { return !prefix_.empty(); }

  [[nodiscard]] std::optional<Failure> too_late() const {
    if (topology_.executor().now() < last_question_) return std::nullopt;
    return Failure{errc::unavailable,
                   "the locks cannot be listed within the response timeout of " +
                       util::to_text(topology_.options().response_timeout) +
                       ": the database has too many keys, or the server is slow; a longer response_timeout helps"};
  }

  void note(const std::string& key) {
    const auto lock = lock_of_fence_key(key);
    if (!lock && is_derived_key(key)) return;
    const std::string& lock_key = lock ? *lock : key;
    if (!lock_key.starts_with(prefix_) || (!lock && (idle_ || !shows_all()))) return;
    std::string name = name_in(topology_.options(), lock_key.substr(prefix_.size()));
    if (!util::problem_with_name(name)) names_.insert(std::move(name));
  }

  void look(const std::string& name, common::Survey::Answer answer) const {
    if (auto why = too_late()) {
      return idle_ ? answer(std::optional<LockInfo>()) : answer(*std::move(why));
    }
    const auto looked = [answer = std::move(answer)](Result<std::optional<LockInfo>> info) {
      if (info.ok() || info.failure().code != errc::protocol) return answer(std::move(info));
      answer(std::optional<LockInfo>());  // another program's data
    };
    if (idle_) return forget_by(topology_, space_, name, *idle_, deadline_, looked);
    inspect_by(topology_, space_, name, deadline_, [looked](Result<LockInfo> info) {
      if (!info.ok()) return looked(info.failure());
      looked(std::optional(std::move(info.value())));
    });
  }

  Topology& topology_;
  const LockKind space_;
  const std::string prefix_;
  const std::optional<std::chrono::nanoseconds> idle_;
  const Backend::Handler<std::vector<LockInfo>> done_;
  const TimePoint deadline_;
  const TimePoint last_question_;
  const std::string pattern_;  // matches the locks' keys and their records, and a few others
  std::vector<common::Host> to_scan_;
  common::Host at_;
  std::set<std::string> names_;
  std::vector<LockInfo> found_;
};

// Releases only the values just read, so that a retry never breaks a lock that was acquired in between.
class Breaking : public std::enable_shared_from_this<Breaking> {
 public:
  Breaking(Topology& topology, LockKind kind, const std::string& name, Backend::Handler<bool> done)
      : topology_(topology),
        space_(kind),
        lock_key_(lock_key(topology.options(), name, kind)),
        done_(std::move(done)),
        deadline_(topology.answer_by()) {}

  void start() {
    const bool shared = several_hold(space_);
    Command words = shared ? Command{"ZRANGE", lock_key_, "0", std::to_string(at_once - 1)} : Command{"GET", lock_key_};
    (void)topology_.send(lock_key_, {.words = std::move(words)}, deadline_,
                         [self = shared_from_this(), shared](Node*, const Result<Reply>& reply, TimePoint) {
                           if (!reply.ok()) return self->done_(unanswered_question(reply.failure()));
                           shared ? self->release_all(reply.value()) : self->release_one(reply.value());
                         });
  }

 private:
  static constexpr int max_attempts = 3;
  static constexpr std::size_t at_once = 1000;  // holders of a lock that several hold

  void release_one(const Reply& value) {
    if (value.is(Type::nil)) return done_(false);
    if (!value.is(Type::string)) return done_(unexpected("GET", value));
    left_ = 1;
    release(value.text);
  }

  void release_all(const Reply& values) {
    if (!values.is(Type::array)) return done_(unexpected("ZRANGE", values));
    for (const Reply& value : values.elements) {
      if (!value.is(Type::string) || !is_value(value.text)) return done_(unexpected("ZRANGE", values));
    }
    left_ = values.elements.size();
    more_ = left_ == at_once;
    if (left_ == 0) return done_(broken_);
    for (const Reply& value : values.elements) release(value.text);
  }

  void release(const std::string& value) {
    request_release(
        topology_, {space_, lock_key_, value, false, Line::common, deadline_},
        [self = shared_from_this()](Node*, const Result<ReleaseAnswer>& answer) { self->released(answer); });
  }

  void released(const Result<ReleaseAnswer>& answer) {
    if (!answer.ok()) {
      failure_ = answer.failure();
    } else if (answer.value().was == ReleaseAnswer::Was::ours) {
      broken_ = true;
    } else if (answer.value().was == ReleaseAnswer::Was::somebody_elses && ++attempts_ < max_attempts) {
      return start();  // it changed hands meanwhile
    }
    if (--left_ > 0) return;
    if (more_ && !failure_) return start();
    failure_ ? done_(*failure_) : done_(broken_);
  }

  Topology& topology_;
  const LockKind space_;
  const std::string lock_key_;
  const Backend::Handler<bool> done_;
  const TimePoint deadline_;
  std::size_t left_ = 0;  // values to release
  bool more_ = false;     // there may be more holders
  std::optional<Failure> failure_;
  bool broken_ = false;
  int attempts_ = 0;
};

}  // namespace

void inspect(Topology& topology, LockKind kind, const std::string& name, Backend::Handler<LockInfo> done) {
  inspect_by(topology, kind, name, topology.answer_by(), std::move(done));
}

void list(Topology& topology, LockKind kind, Backend::Handler<std::vector<LockInfo>> done) {
  std::make_shared<Listing>(topology, kind, std::nullopt, std::move(done))->start();
}

void break_lock(Topology& topology, LockKind kind, const std::string& name, Backend::Handler<bool> done) {
  std::make_shared<Breaking>(topology, kind, name, std::move(done))->start();
}

void forget(Topology& topology, const Forgetting& what, Backend::Handler<std::vector<std::string>> done) {
  if (what.name.empty()) {
    std::make_shared<Listing>(topology, what.kind, what.idle,
                              [done = std::move(done)](Result<std::vector<LockInfo>> removed) {
                                if (!removed.ok()) return done(removed.failure());
                                done(names_of(removed.value()));
                              })
        ->start();
    return;
  }
  forget_by(topology, what.kind, what.name, what.idle, topology.answer_by(),
            [done = std::move(done)](Result<std::optional<LockInfo>> removed) {
              if (!removed.ok()) return done(removed.failure());
              std::vector<std::string> names;
              if (removed.value()) names.push_back(removed.value()->name);
              done(std::move(names));
            });
}

}  // namespace dlock::redis
