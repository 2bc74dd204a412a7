#include "backends/zookeeper/administration/chroot.hpp"

#include <memory>
#include <utility>

#include "backends/common/reconnect.hpp"

namespace dlock::zookeeper {

namespace {

Options without_chroot(Options options) {
  options.chroot.clear();
  return options;
}

}  // namespace

Chroot::Chroot(Executor& executor, Options options, HandleFactory handles)
    : path_(options.chroot),
      options_(without_chroot(std::move(options))),
      executor_(executor),
      session_(executor, options_, std::move(handles), *this),
      requests_(session_),
      queries_(executor, session_, options_.response_timeout) {}

Chroot::~Chroot() = default;

class Chroot::Making : public std::enable_shared_from_this<Making> {
 public:
  Making(Chroot& chroot, Queries::Query<Names> query)
      : requests_(chroot.requests_), query_(std::move(query)), path_(chroot.path_) {}

  // Finds the nodes that are missing, from the bottom. One that may not be read exists.
  void look() {
    if (path_.empty()) return create();
    if (!requests_.ready()) return retry(requests_.session().problem(), &Making::look);
    requests_.get(path_, [self = shared_from_this()](const Outcome& outcome, const Handle::Node&) {
      if (outcome.problem == Problem::none || outcome.problem == Problem::no_rights) return self->create();
      if (outcome.problem != Problem::no_node) return self->failed(outcome, &Making::look);
      self->missing_.push_back(self->path_);
      self->path_.resize(self->path_.rfind('/'));
      self->look();
    });
  }

 private:
  void create() {
    if (missing_.empty()) return query_.answer(made_);
    if (!requests_.ready()) return retry(requests_.session().problem(), &Making::create);
    requests_.create(
        missing_.back(), {}, NodeKind::persistent,
        [self = shared_from_this()](const Outcome& outcome, const Handle::Created&) { self->created(outcome); });
  }
  void created(const Outcome& outcome) {
    const bool exists = outcome.problem == Problem::node_exists;
    if (outcome.problem != Problem::none && !exists) {
      outcome_unknown_ |= outcome.problem == Problem::unknown_outcome || outcome.problem == Problem::session_over;
      return failed(outcome, &Making::create);
    }
    if (const bool theirs = exists && !outcome_unknown_; !theirs) made_.push_back("node " + missing_.back());
    outcome_unknown_ = false;
    missing_.pop_back();
    create();
  }

  void failed(const Outcome& outcome, void (Making::*step)()) {
    switch (outcome.problem) {
      case Problem::unknown_outcome:
      case Problem::session_over:
      case Problem::not_executed:
        return retry(outcome.failure, step);
      default:
        return query_.answer(outcome.failure);
    }
  }
  void retry(const Failure& why, void (Making::*step)()) {
    query_.retry(unanswered_question(why), [self = shared_from_this(), step] { (*self.*step)(); });
  }

  Requests& requests_;
  const Queries::Query<Names> query_;
  std::string path_;              // the one to be read next
  Names missing_;                 // the one to be created next is last
  Names made_;                    // from the top
  bool outcome_unknown_ = false;  // of the creation of the one to be created next
};

void Chroot::make(Backend::Handler<Names> done) {
  if (path_.empty()) return done(Names());
  const auto made = [this, done = std::move(done)](Result<Names> names) {
    // Not inside a call from the session.
    executor_.post(lifetime_.guard([this] {
      if (queries_.empty()) session_.rest();
    }));
    done(std::move(names));
  };
  queries_.start<Names>(made, [this](const auto& query) { std::make_shared<Making>(*this, query)->look(); });
}

void Chroot::session_suspended(const Failure& why) {
  if (common::is_final_refusal(why)) queries_.session_refused(why);
}

}  // namespace dlock::zookeeper
