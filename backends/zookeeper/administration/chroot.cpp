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
      queries_(executor, session_, options_.response_timeout) {}

Chroot::~Chroot() = default;

// From the bottom: a server checks the rights to a parent before it checks whether the node exists already.
class Chroot::Making : public std::enable_shared_from_this<Making> {
 public:
  Making(Chroot& chroot, Queries::Query<Names> query)
      : session_(chroot.session_), query_(std::move(query)), missing_{chroot.path_} {}

  void create() {
    if (!session_.ready()) return create_later(session_.problem());
    session_.request_sent(Session::Kind::create);
    session_.handle().create(missing_.back(), {}, NodeKind::persistent,
                             [self = shared_from_this()](const Outcome& outcome, const Handle::Created&) {
                               self->session_.request_answered(Session::Kind::create, outcome);
                               self->created(outcome);
                             });
  }

 private:
  void created(const Outcome& outcome) {
    switch (outcome.problem) {
      case Problem::none:
        return next(true);
      case Problem::node_exists:
        return next(outcome_unknown_);
      case Problem::no_node: {
        const std::size_t slash = missing_.back().rfind('/');
        if (slash == 0) return query_.answer(outcome.failure);
        outcome_unknown_ = false;
        missing_.push_back(missing_.back().substr(0, slash));
        return create();
      }
      case Problem::unknown_outcome:
      case Problem::session_over:
        outcome_unknown_ = true;
        return create_later(outcome.failure);
      case Problem::not_executed:
        return create_later(outcome.failure);
      case Problem::no_rights:
        return query(outcome.failure);
      case Problem::other:
        return query_.answer(outcome.failure);
    }
  }

  // If the node exists nevertheless, no right is needed. That it may not be read proves that it exists.
  void query(const Failure& why) {
    if (!session_.ready()) return create_later(session_.problem());
    session_.handle().get(missing_.back(), 0,
                          [self = shared_from_this(), why](const Outcome& outcome, const Handle::Node&) {
                            switch (outcome.problem) {
                              case Problem::none:
                              case Problem::no_rights:
                                return self->next(false);
                              case Problem::no_node:
                              case Problem::other:
                                return self->query_.answer(why);
                              default:
                                return self->create_later(outcome.failure);
                            }
                          });
  }

  // The node exists.
  void next(bool by_us) {
    if (by_us) made_.push_back("node " + missing_.back());
    outcome_unknown_ = false;
    missing_.pop_back();
    missing_.empty() ? query_.answer(made_) : create();
  }

  void create_later(const Failure& why) {
    query_.retry(unanswered_question(why), [self = shared_from_this()] { self->create(); });
  }

  Session& session_;
  const Queries::Query<Names> query_;
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
  queries_.start<Names>(made, [this](const auto& query) { std::make_shared<Making>(*this, query)->create(); });
}

void Chroot::session_suspended(const Failure& why) {
  if (common::is_final_refusal(why)) queries_.session_refused(why);
}

}  // namespace dlock::zookeeper
