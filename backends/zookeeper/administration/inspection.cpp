#include "backends/zookeeper/administration/inspection.hpp"

#include <algorithm>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>

#include "backends/common/survey.hpp"
#include "backends/zookeeper/nodes/node_name.hpp"
#include "backends/zookeeper/nodes/removals.hpp"
#include "backends/zookeeper/strategies/queue_walk.hpp"
#include "util/names.hpp"

namespace dlock::zookeeper {

namespace {

// The holder may release between the list and the query of its node.
constexpr int max_attempts = 5;
// Curator's Revoker writes it over the holder's data, to ask for the lock.
constexpr std::string_view request_to_let_go = "__REVOKE__";

using Names = std::vector<std::string>;

struct Holder {
  std::string path;
  Mode mode = Mode::exclusive;
  Handle::Node node = {};
  bool gone = false;
};

// The state of a lock.
struct Lock {
  std::string path;
  bool exists = false;
  bool looks_like_data = false;  // of another program
  std::vector<Holder> holders = {};
  std::size_t members = 0;  // of the queue: holders and waiters
  std::uint32_t permits = 0;

  [[nodiscard]] bool held() const noexcept { return !holders.empty(); }
};

// Reads the nodes of a lock, in round trips: the node and its children; if there may be semaphores of Curator, those;
// the holders' nodes. A failure of a request is the answer to the query.
template <class Query>
class Reading : public std::enable_shared_from_this<Reading<Query>> {
 public:
  // The failure: the node is not a lock's.
  using Then = std::function<void(Result<Lock>)>;

  Reading(Subject subject, Query query, Then then)
      : subject_(std::move(subject)), query_(std::move(query)), then_(std::move(then)) {}

  void start() {
    if (!query_.goes_on()) return;
    lock_ = {lock_path(subject_.options.prefix, subject_.name, subject_.kind)};
    requests().get(lock_.path, answered([this](bool there, const Handle::Node& node) {
                     lock_.exists = there;
                     lock_.looks_like_data = there && node.stat.owner == 0 && !node.data.empty();
                     if (there && node.stat.owner != 0) lock_.holders = {{.path = lock_.path, .node = node}};
                   }));
    requests().children(lock_.path, answered([this](bool, const Names& children) {
                          lock_.held() ? then_(lock_) : read_queue(children);
                        }));
  }

 private:
  [[nodiscard]] Requests& requests() const { return subject_.requests; }
  template <class Then>
  [[nodiscard]] auto answered(Then then) {
    return query_.on_answer(
        [self = this->shared_from_this(), then](bool there, const auto& what) { then(there, what); });
  }

  void read_queue(const Names& children) {
    const Queue queue = judge_queue(subject_.options.layout, lock_.path, children, subject_.kind);
    if (queue.problem) return then_(*queue.problem);
    lock_.members = queue.members.size();
    for (const Queue::Member& member : queue.holders()) {
      lock_.permits = member.permits;
      lock_.holders.push_back({.path = lock_.path + "/" + std::string(member.node), .mode = member.mode});
    }
    if (!queue.semaphore) return read_holders();
    requests().occupied_semaphore(lock_.path, answered([this](bool, std::string_view occupied) {
                                    if (occupied.empty()) return read_holders();
                                    then_(foreign_child(lock_.path, occupied, semaphore_layout));
                                  }));
  }

  void read_holders() {
    if (!lock_.held()) return then_(lock_);
    unanswered_ = lock_.holders.size();
    for (Holder& holder : lock_.holders) {
      requests().get(holder.path, answered([this, &holder](bool there, const Handle::Node& node) {
                       holder.node = node;
                       holder.gone = !there;
                       if (--unanswered_ == 0) holders_read();
                     }));
    }
  }
  void holders_read() {
    const bool all_gone = std::ranges::all_of(lock_.holders, &Holder::gone);
    // The next in line may hold it by now.
    if (all_gone && --attempts_left_ > 0) return start();
    if (!all_gone) lock_.members -= std::erase_if(lock_.holders, [](const Holder& each) { return each.gone; });
    then_(lock_);
  }

  const Subject subject_;
  const Query query_;
  const Then then_;
  Lock lock_;
  int attempts_left_ = max_attempts;
  std::size_t unanswered_ = 0;  // queries of holders
};

// If the node is not a lock's, that is the answer to the query.
template <class Query>
void read(const Subject& subject, const Query& query, std::function<void(const Lock&)> then) {
  const auto read = [query, then = std::move(then)](const Result<Lock>& lock) {
    lock.ok() ? then(lock.value()) : query.answer(lock.failure());
  };
  std::make_shared<Reading<Query>>(subject, query, read)->start();
}

// The children of the node below which the locks of the kind are.
template <class Query>
void read_parent(const Subject& subject, const Query& query, std::function<void(const Names&)> then) {
  const std::string& prefix = subject.options.prefix;
  subject.requests.children(prefix.empty() ? "/" : kind_path(prefix, subject.kind),
                            query.on_answer([then = std::move(then)](bool, const Names& children) { then(children); }));
}

// Children whose names may be names of locks.
Names names_among(const Options& options, const Names& children) {
  Names names;
  for (const std::string& child : children) {
    auto name = decode_name(child);
    if (name && !util::problem_with_name(*name) && !options.problem_with(*name)) names.push_back(*std::move(name));
  }
  return names;
}

// The part of a node's data that names the owner; other programs may write anything there.
std::string_view holder_in(std::string_view data, LockKind kind) {
  const bool more = kind == LockKind::election || kind == LockKind::semaphore;  // after a line feed
  const std::string_view holder = data.substr(0, more ? data.find('\n') : std::string_view::npos);
  return util::problem_with_name(holder) || holder == request_to_let_go ? std::string_view() : holder;
}

LockInfo info_of(const Subject& subject, const Lock& lock) {
  LockInfo info{.name = subject.name, .held = lock.held(), .kind = subject.kind};
  for (const Holder& each : lock.holders) {
    const std::string data = each.path == lock.path ? holder_of(each.node.data) : each.node.data;
    const std::string_view holder = holder_in(data, info.kind);
    const FencingToken token(static_cast<std::uint64_t>(each.node.stat.created));
    if (info.kind == LockKind::election && !holder.empty()) {
      set_holder(info, data);
    } else if (&each == &lock.holders.front()) {
      info.holder = holder;
    }
    info.token = std::max(info.token, token);
    if (info.kind == LockKind::read_write || info.kind == LockKind::semaphore) {
      info.holders.push_back({.holder = std::string(holder), .mode = each.mode, .token = token});
    }
  }
  if (info.kind == LockKind::semaphore) info.permits = lock.permits;
  if (subject.options.strategy != Strategy::ephemeral) {
    info.waiters = lock.members - std::min(lock.members, lock.holders.size());
  }
  return info;
}

// Answers whether any of them was there.
void remove_all(Requests& requests, const std::vector<Holder>& holders, Backend::Handler<bool> done) {
  struct Removals {
    std::size_t left;
    Result<bool> any = false;
  };
  const auto removed = [all = std::make_shared<Removals>(Removals{holders.size()}),
                        done = std::move(done)](const Outcome& outcome) {
    const bool there = outcome.problem == Problem::none;
    if (!there && outcome.problem != Problem::no_node) all->any = outcome.failure;
    if (there && all->any.ok()) all->any = true;
    if (--all->left == 0) done(all->any);
  };
  for (const Holder& holder : holders) requests.remove(holder.path, removed);
}

void break_holders(const Subject& subject, const Queries::Query<bool>& query, int attempts_left = max_attempts) {
  read(subject, query, [=](const Lock& lock) {
    if (!lock.held()) return query.answer(false);
    remove_all(subject.requests, lock.holders, [=](const Result<bool>& any) {
      // They were released meanwhile, and a different client may hold it.
      const bool again = any.ok() && !any.value() && attempts_left > 1;
      again ? break_holders(subject, query, attempts_left - 1) : query.answer(any);
    });
  });
}

void remove_unused(const Subject& subject, const Queries::Query<Names>& query, int attempts_left = max_attempts) {
  read(subject, query, [=](const Lock& lock) {
    if (lock.held() || !lock.exists) return query.answer(Names());
    if (lock.looks_like_data) {
      return query.answer(
          Failure{errc::protocol, "node " + util::quoted(lock.path) + " holds data, so it does not belong to a lock"});
    }
    subject.requests.remove_childless(lock.path, [=](const Outcome& outcome) {
      if (outcome.problem == Problem::none) return query.answer(Names{subject.name});
      if (outcome.problem == Problem::no_node) return query.answer(Names());
      // Most likely a client has joined meanwhile.
      const bool again = outcome.problem == Problem::other && attempts_left > 1;
      again ? remove_unused(subject, query, attempts_left - 1) : query.answer(outcome.failure);
    });
  });
}

// A name that no lock may have is refused before a session is needed.
template <class T, class F>
void start(Queries& queries, const Subject& subject, Backend::Handler<T> done, F begin) {
  if (auto problem = subject.options.problem_with(subject.name)) return done(*std::move(problem));
  queries.start<T>(std::move(done), [subject, begin](const auto& query) { begin(subject, query); });
}

}  // namespace

void ping(Queries& queries, const Subject& subject, Backend::Handler<bool> done) {
  start(queries, subject, std::move(done), [](const Subject& what, const auto& query) {
    read_parent(what, query, [=](const Names&) { read(what, query, [=](const Lock&) { query.answer(true); }); });
  });
}

void inspect(Queries& queries, const Subject& subject, Backend::Handler<LockInfo> done) {
  start(queries, subject, std::move(done), [](const Subject& what, const auto& query) {
    read(what, query, [=](const Lock& lock) { query.answer(info_of(what, lock)); });
  });
}

void list(Queries& queries, const Subject& all, Backend::Handler<std::vector<LockInfo>> done) {
  queries.start<std::vector<LockInfo>>(std::move(done), [all](auto query) {
    const auto look = [=](const std::string& name, const common::Survey::Answer& answer) {
      const Subject subject{all.options, all.requests, all.kind, name};
      const auto read = [subject, answer](const Result<Lock>& lock) {
        const bool is_lock =
            lock.ok() && (lock.value().held() || (lock.value().exists && !lock.value().looks_like_data));
        answer(is_lock ? std::optional(info_of(subject, lock.value())) : std::nullopt);
      };
      std::make_shared<Reading<decltype(query)>>(subject, query, read)->start();
    };
    read_parent(all, query, [=](const Names& children) {
      common::Survey::run(names_among(all.options, children), look,
                          [=](auto found) { query.answer(std::move(found)); });
    });
  });
}

void break_lock(Queries& queries, const Subject& subject, Backend::Handler<bool> done) {
  start(queries, subject, std::move(done), [](const Subject& what, const auto& query) { break_holders(what, query); });
}

void forget(Queries& queries, const Subject& subject, Backend::Handler<Names> done) {
  if (subject.name.empty()) {
    return done(
        Failure{errc::unsupported,
                "ZooKeeper does not know when the node of a lock was last used; name the locks to be forgotten"});
  }
  start(queries, subject, std::move(done), [](const Subject& what, const auto& query) { remove_unused(what, query); });
}

}  // namespace dlock::zookeeper
