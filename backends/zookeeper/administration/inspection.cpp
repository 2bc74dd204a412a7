#include "backends/zookeeper/administration/inspection.hpp"

#include <algorithm>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>

#include "backends/common/for_each_still_in.hpp"
#include "backends/common/survey.hpp"
#include "backends/zookeeper/nodes/node_name.hpp"
#include "backends/zookeeper/nodes/removals.hpp"
#include "backends/zookeeper/strategies/queue_walk.hpp"
#include "util/names.hpp"

namespace dlock::zookeeper {

namespace {

// The holder may go between the list and the query of its node.
constexpr int max_attempts = 5;
// Curator's Revoker writes it over the holder's data, to ask for the lock.
constexpr std::string_view request_to_let_go = "__REVOKE__";

using Names = std::vector<std::string>;

struct Subject {
  LockKind kind;
  std::string name;
  std::string path;
};

struct Holder {
  std::string path;
  Mode mode = Mode::exclusive;
  Handle::Node node = {};
  bool gone = false;
};

// The state of a lock.
struct Snapshot {
  bool exists = false;
  std::vector<Holder> holders = {};
  std::size_t members = 0;
  std::uint32_t permits = 0;     // of those who hold it or wait
  bool looks_like_data = false;  // of another program
  [[nodiscard]] bool held() const noexcept { return !holders.empty(); }
};
// The data of a node, as far as it names the owner; foreign programs put anything there.
std::string_view holder_in(std::string_view data, LockKind kind) {
  const bool more = kind == LockKind::election || kind == LockKind::semaphore;  // behind a line feed
  const std::string_view holder = data.substr(0, more ? data.find('\n') : std::string_view::npos);
  return util::problem_with_name(holder) || holder == request_to_let_go ? std::string_view() : holder;
}

bool is_unusable(const Outcome& outcome) {
  return outcome.problem != Problem::none && outcome.problem != Problem::no_node;
}

// Queries the nodes of a lock, and answers with its state.
class Reading : public std::enable_shared_from_this<Reading> {
 public:
  using Handler = std::function<void(const Result<Snapshot>&)>;

  Reading(const Options& options, Requests& requests, Subject lock, Handler done)
      : options_(options), requests_(requests), lock_(std::move(lock)), done_(std::move(done)) {}

  // The node and its children in one round trip.
  void start(Inspection::Age age) {
    if (session_is_over()) return;
    snapshot_ = {};
    const auto self = shared_from_this();
    const auto node_read = [self](const Outcome& outcome, const Handle::Node& node) {
      if (self->failed(outcome) || outcome.problem == Problem::no_node) return;
      self->snapshot_.exists = true;
      self->snapshot_.looks_like_data = node.stat.owner == 0 && !node.data.empty();
      if (node.stat.owner != 0) self->snapshot_.holders.push_back({.path = self->lock_.path, .node = node});
    };
    age == Inspection::Age::of_query ? requests_.get_latest(lock_.path, node_read)
                                     : requests_.get(lock_.path, node_read);
    requests_.children(lock_.path, [self](const Outcome& outcome, const Names& children) {
      const bool whole = self->problem_.code || outcome.problem == Problem::no_node || self->snapshot_.held();
      if (whole || self->failed(outcome)) return self->finish();
      self->read_queue(children);
    });
  }

 private:
  void finish() { done_(problem_.code ? Result<Snapshot>(unanswered_question(problem_)) : std::move(snapshot_)); }
  void fail(const Failure& why) {
    problem_ = why;
    finish();
  }
  // The answer is of no use.
  bool failed(const Outcome& outcome) {
    if (is_unusable(outcome)) problem_ = outcome.failure;
    return is_unusable(outcome);
  }
  bool session_is_over() {
    if (requests_.ready()) return false;
    fail(requests_.session().problem());
    return true;
  }

  void read_queue(const Names& children) {
    const Queue queue = judge_queue(options_.layout, lock_.path, children, lock_.kind);
    if (queue.problem) return fail(*queue.problem);
    snapshot_.members = queue.members.size();
    for (const Queue::Member& member : queue.holders()) {
      snapshot_.exists = true;
      snapshot_.permits = member.permits;
      snapshot_.holders.push_back({.path = lock_.path + "/" + std::string(member.node), .mode = member.mode});
    }
    if (!queue.semaphore) return read_holders();
    if (session_is_over()) return;
    const auto self = shared_from_this();
    requests_.occupied_semaphore(lock_.path, [self](const Outcome& outcome, std::string_view occupied) {
      if (outcome.problem != Problem::none) return self->fail(outcome.failure);
      if (!occupied.empty()) return self->fail(foreign_child(self->lock_.path, occupied, semaphore_layout));
      self->read_holders();
    });
  }

  void read_holders() {
    if (!snapshot_.held()) return finish();
    if (session_is_over()) return;
    unanswered_ = snapshot_.holders.size();
    for (Holder& holder : snapshot_.holders) {
      requests_.get(holder.path,
                    [self = shared_from_this(), &holder](const Outcome& outcome, const Handle::Node& node) {
                      holder.node = node;
                      holder.gone = outcome.problem == Problem::no_node;
                      (void)self->failed(outcome);  // reported with the last answer
                      if (--self->unanswered_ == 0) self->holders_read();
                    });
    }
  }
  void holders_read() {
    const bool all_gone = std::ranges::all_of(snapshot_.holders, &Holder::gone);
    // Those who were next may hold it by now.
    if (!problem_.code && all_gone && --attempts_left_ > 0) return start(Inspection::Age::of_session);
    if (!all_gone) snapshot_.members -= std::erase_if(snapshot_.holders, [](const Holder& each) { return each.gone; });
    finish();
  }

  const Options& options_;
  Requests& requests_;
  const Subject lock_;
  const Handler done_;
  int attempts_left_ = max_attempts;
  Snapshot snapshot_;
  Failure problem_;
  std::size_t unanswered_ = 0;  // queries of holders
};

LockInfo info_of(const Options& options, const Subject& lock, const Snapshot& snapshot) {
  LockInfo info{.name = lock.name, .held = snapshot.held(), .kind = lock.kind};
  for (const Holder& each : snapshot.holders) {
    const std::string_view data = each.path == lock.path ? holder_of(each.node.data) : each.node.data;
    const std::string_view holder = holder_in(data, lock.kind);
    const FencingToken token(static_cast<std::uint64_t>(each.node.stat.created));
    if (lock.kind == LockKind::election && !holder.empty()) {
      set_holder(info, data);
    } else if (&each == &snapshot.holders.front()) {
      info.holder = holder;
    }
    info.token = std::max(info.token, token);
    if (lock.kind == LockKind::read_write || lock.kind == LockKind::semaphore) {
      info.holders.push_back({.holder = std::string(holder), .mode = each.mode, .token = token});
    }
  }
  if (lock.kind == LockKind::semaphore) info.permits = snapshot.permits;
  if (options.strategy != Strategy::ephemeral) {
    info.waiters = snapshot.members - std::min(snapshot.members, snapshot.holders.size());
  }
  return info;
}

// The children of the prefix that may be names of locks.
Names names_among(const Options& options, const Names& children) {
  const bool root = options.prefix.empty() && options.chroot.empty();
  Names names;
  for (const std::string& child : children) {
    if (root && child == "zookeeper") continue;  // ZooKeeper's own
    auto name = decode_name(child);
    if (name && !util::problem_with_name(*name)) names.push_back(*std::move(name));
  }
  return names;
}

// Answers whether any of them was there.
void remove_holders(Requests& requests, const std::vector<Holder>& holders, Backend::Handler<bool> done) {
  struct Removals {
    std::size_t left;
    bool any = false;
    Failure problem = {};
  };
  const auto removed = [all = std::make_shared<Removals>(Removals{holders.size()}),
                        done = std::move(done)](const Outcome& outcome) {
    if (outcome.problem == Problem::none) all->any = true;
    if (is_unusable(outcome)) all->problem = outcome.failure;
    if (--all->left == 0) done(all->problem.code ? Result<bool>(all->problem) : Result<bool>(all->any));
  };
  for (const Holder& holder : holders) requests.remove(holder.path, removed);
}

}  // namespace

// --- Queries ---------------------------------------------------------------------------------------------------------

// Answers once: with the result, or at the deadline. All copies are the same query.
template <class T>
class Inspection::Query {
 public:
  Query(Inspection& inspection, std::uint64_t id, Backend::Handler<T> done)
      : inspection_(inspection), id_(id), done_(std::make_shared<Backend::Handler<T>>(std::move(done))) {}

  [[nodiscard]] bool answered() const { return !inspection_.open_.contains(id_); }
  void answer(Result<T> result) const {
    const auto done = done_;  // which may be the end of us
    if (inspection_.open_.erase(id_) > 0) (*done)(std::move(result));
  }

 private:
  Inspection& inspection_;
  std::uint64_t id_;
  std::shared_ptr<const Backend::Handler<T>> done_;
};

template <class T, class Begin>
void Inspection::start(Backend::Handler<T> done, Begin begin) {
  const std::uint64_t id = ++last_id_;
  const Query<T> query(*this, id, std::move(done));
  Open& open = open_.try_emplace(id, executor_).first->second;
  open.fail = [query](const Failure& why) { query.answer(why); };
  open.deadline.arm(saturating_add(executor_.now(), options_.response_timeout), [this, query] {
    Failure why = requests_.session().problem();
    if (!why.code) why.detail = "ZooKeeper did not answer in time";
    why.code = why.code == errc::access_denied ? errc::access_denied : errc::unavailable;
    query.answer(std::move(why));
  });
  if (requests_.ready()) return begin(query);
  open.begin = [query, begin = std::move(begin)] { begin(query); };
  requests_.session().want();
}

void Inspection::session_ready() {
  common::for_each_still_in(open_, [this](auto, Open& open) {
    if (!requests_.ready()) return;
    if (const auto begin = std::exchange(open.begin, nullptr)) begin();
  });
}

void Inspection::session_refused(const Failure& why) {
  common::for_each_still_in(open_, [&](auto, Open& open) {
    const auto fail = open.fail;
    fail(why);
  });
}

// The children of the node below which the locks of that kind are.
template <class T, class Then>
void Inspection::read_parent(const Query<T>& query, LockKind kind, Then then) {
  const std::string parent = options_.prefix.empty() ? "/" : kind_path(options_.prefix, kind);
  requests_.children_latest(parent, [query, then](const Outcome& outcome, const Names& children) {
    if (is_unusable(outcome)) return query.answer(unanswered_question(outcome.failure));
    if (!query.answered()) then(children);
  });
}

// The state of a lock, if it was read.
template <class T, class Then>
void Inspection::read(const Query<T>& query, LockKind kind, const std::string& name, Age age, Then then) {
  const Subject lock{kind, name, lock_path(options_.prefix, name, kind)};
  const auto done = [query, lock, then](const Result<Snapshot>& snapshot) {
    if (query.answered()) return;
    if (!snapshot.ok()) return query.answer(snapshot.failure());
    then(lock, snapshot.value());
  };
  std::make_shared<Reading>(options_, requests_, lock, done)->start(age);
}

// --- The queries -----------------------------------------------------------------------------------------------------

void Inspection::ping(const std::string& name, Backend::Handler<bool> done) {
  start<bool>(std::move(done), [this, name](const auto& query) {
    read_parent(query, LockKind::lock, [this, name, query](const Names&) {
      read(query, LockKind::lock, name, Age::of_session,
           [query](const Subject&, const Snapshot&) { query.answer(true); });
    });
  });
}

void Inspection::inspect(LockKind kind, const std::string& name, Backend::Handler<LockInfo> done) {
  start<LockInfo>(std::move(done), [this, kind, name](const auto& query) {
    read(query, kind, name, Age::of_query, [this, query](const Subject& lock, const Snapshot& snapshot) {
      query.answer(info_of(options_, lock, snapshot));
    });
  });
}

void Inspection::list(LockKind kind, Backend::Handler<std::vector<LockInfo>> done) {
  start<std::vector<LockInfo>>(std::move(done), [this, kind](const auto& query) {
    const auto look = [this, kind, query](const std::string& name, const common::Survey::Answer& answer) {
      if (query.answered()) return answer(Failure{errc::unavailable, "too late"});
      const Subject lock{kind, name, lock_path(options_.prefix, name, kind)};
      const auto read = [this, lock, answer](const Result<Snapshot>& snapshot) {
        if (!snapshot.ok() && snapshot.failure().code != errc::protocol) return answer(snapshot.failure());
        // A protocol failure: of another layout, or no lock.
        const bool is_lock = snapshot.ok() && (snapshot.value().held() ||
                                               (snapshot.value().exists && !snapshot.value().looks_like_data));
        answer(is_lock ? std::optional(info_of(options_, lock, snapshot.value())) : std::nullopt);
      };
      std::make_shared<Reading>(options_, requests_, lock, read)->start(Age::of_session);
    };
    read_parent(query, kind, [this, look, query](const Names& children) {
      common::Survey::run(names_among(options_, children), look, [query](auto all) { query.answer(std::move(all)); });
    });
  });
}

void Inspection::break_lock(LockKind kind, const std::string& name, Backend::Handler<bool> done) {
  start<bool>(std::move(done), [this, kind, name](const auto& query) { break_one(kind, name, max_attempts, query); });
}

void Inspection::break_one(LockKind kind, const std::string& name, int attempts_left, const Query<bool>& query) {
  read(query, kind, name, Age::of_query, [this, attempts_left, query](const Subject& lock, const Snapshot& snapshot) {
    if (!snapshot.held()) return query.answer(false);
    if (!requests_.ready()) return query.answer(unanswered_question(requests_.session().problem()));
    remove_holders(requests_, snapshot.holders, [this, lock, attempts_left, query](Result<bool> any) {
      // They were released meanwhile, and another client may hold it.
      const bool again = any.ok() && !any.value() && attempts_left > 1;
      again ? break_one(lock.kind, lock.name, attempts_left - 1, query) : query.answer(std::move(any));
    });
  });
}

void Inspection::forget(const Forgetting& what, Backend::Handler<Names> done) {
  if (what.name.empty()) {
    return done(
        Failure{errc::unsupported,
                "ZooKeeper does not know when the node of a lock was last used; name the locks to be forgotten"});
  }
  start<Names>(std::move(done), [this, kind = what.kind, name = what.name](const auto& query) {
    forget_one(kind, name, max_attempts, query);
  });
}

void Inspection::forget_one(LockKind kind, const std::string& name, int attempts_left, const Query<Names>& query) {
  read(query, kind, name, Age::of_query, [this, attempts_left, query](const Subject& lock, const Snapshot& snapshot) {
    if (snapshot.held() || !snapshot.exists) return query.answer(Names());
    if (snapshot.looks_like_data) {
      return query.answer(
          Failure{errc::protocol, "node " + util::quoted(lock.path) + " holds data, so it does not belong to a lock"});
    }
    if (!requests_.ready()) return query.answer(unanswered_question(requests_.session().problem()));
    requests_.remove_childless(lock.path, [this, lock, attempts_left, query](const Outcome& outcome) {
      if (outcome.problem == Problem::none) return query.answer(Names{lock.name});
      if (outcome.problem == Problem::no_node) return query.answer(Names());
      // Most likely a client has come meanwhile.
      const bool again = outcome.problem == Problem::other && attempts_left > 1;
      again ? forget_one(lock.kind, lock.name, attempts_left - 1, query) : query.answer(outcome.failure);
    });
  });
}

}  // namespace dlock::zookeeper
