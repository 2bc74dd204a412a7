#include "backends/zookeeper/administration/chroot.hpp"

#include <utility>

namespace dlock::zookeeper {

namespace {

std::vector<std::string> with_all_above(const std::string& path) {
  std::vector<std::string> paths;
  for (std::size_t end = path.find('/', 1); end != std::string::npos; end = path.find('/', end + 1)) {
    paths.push_back(path.substr(0, end));
  }
  paths.push_back(path);
  return paths;
}

Options without_chroot(Options options) {
  options.chroot.clear();
  return options;
}

}  // namespace

Chroot::Chroot(Executor& executor, Options options, HandleFactory handles)
    : paths_(options.chroot.empty() ? std::vector<std::string>() : with_all_above(options.chroot)),
      options_(without_chroot(std::move(options))),
      executor_(executor),
      session_(executor, options_, std::move(handles), *this),
      timer_(executor) {}

Chroot::~Chroot() = default;

void Chroot::make(Handler done) {
  if (paths_.empty()) return done(std::vector<std::string>());
  waiting_.push_back(std::move(done));
  if (waiting_.size() > 1) return;  // joins the first
  made_.clear();
  next_ = 0;
  timer_.arm(saturating_add(executor_.now(), options_.response_timeout), [this] {
    Failure why = session_.problem();
    if (session_.ready() || !why.code) why = {errc::unavailable, "ZooKeeper did not answer in time"};
    finish(std::move(why));
  });
  session_.want();
}

void Chroot::create() {
  if (std::exchange(asking_, true)) return;
  session_.handle().create(paths_[next_], {}, NodeKind::persistent,
                           lifetime_.guard([this](const Outcome& outcome, const Handle::Created&) {
                             asking_ = false;
                             created(outcome);
                           }));
}

void Chroot::created(const Outcome& outcome) {
  if (waiting_.empty()) return;  // it came too late
  switch (outcome.problem) {
    case Problem::none:
      made_.push_back("node " + paths_[next_]);
      break;
    case Problem::node_exists:
      break;
    case Problem::unknown_outcome:
    case Problem::session_over:
    case Problem::not_executed:
      if (session_.ready()) create();
      return;  // session_ready() goes on
    case Problem::no_node:
    case Problem::no_rights:
    case Problem::other:
      return finish(outcome.failure);
  }
  if (++next_ == paths_.size()) return finish(std::nullopt);
  if (session_.ready()) create();
}

// Not from inside: the session is just telling.
void Chroot::finish(std::optional<Failure> why) {
  timer_.disarm();
  const auto waiting = std::exchange(waiting_, {});
  executor_.post(lifetime_.guard([this] {
    if (waiting_.empty()) session_.rest();
  }));
  for (const Handler& done : waiting) {
    if (why) {
      done(*why);
    } else {
      done(made_);
    }
  }
}

// --- The session -----------------------------------------------------------------------------------------------------

void Chroot::session_ready(bool fresh) {
  if (fresh) asking_ = false;  // what was asked in the one before has been answered, or never will be
  if (!waiting_.empty()) create();
}

void Chroot::session_suspended(const Failure& why) {
  if (why.code == errc::access_denied && !waiting_.empty()) finish(why);
}

void Chroot::session_lost(const Failure& /*why*/) {
  asking_ = false;  // there will be another one, and the deadline judges
  session_.want();
}

}  // namespace dlock::zookeeper
