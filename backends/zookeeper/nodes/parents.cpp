#include "backends/zookeeper/nodes/parents.hpp"

#include <algorithm>
#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

#include "util/names.hpp"

namespace dlock::zookeeper {

namespace {

// The server may remove a node that was just made, because it is still empty, but not repeatedly. In addition to one
// for each node above.
constexpr std::ptrdiff_t max_detours = 8;

}  // namespace

struct Parents::Work {
  std::vector<std::string> missing;  // the one to be made next is last
  Handler done;
  std::ptrdiff_t detours_left = max_detours;
};

void Parents::make(const std::string& path, Handler done) {
  if (path.empty()) return done({.status = Made::Status::refused, .failure = no_place()});
  const auto work = std::make_shared<Work>();
  work->missing.push_back(path);
  work->done = std::move(done);
  work->detours_left = std::count(path.begin(), path.end(), '/') + max_detours;
  create(work);
}

void Parents::create(const std::shared_ptr<Work>& work) {
  if (!requests_.ready()) {
    return work->done({.status = Made::Status::again, .failure = requests_.session().problem()});
  }
  requests_.create(work->missing.back(), {}, kind(),
                   [this, work](const Outcome& outcome, const Handle::Created&) { created(work, outcome); });
}

void Parents::created(const std::shared_ptr<Work>& work, const Outcome& outcome) {
  using Status = Made::Status;
  switch (outcome.problem) {
    case Problem::none:
    case Problem::node_exists:
      work->missing.pop_back();
      if (work->missing.empty()) {
        return work->done({.status = Status::made, .by_us = outcome.problem == Problem::none});
      }
      return create(work);
    case Problem::no_node: {
      const std::string path = work->missing.back();
      const std::size_t slash = path.rfind('/');
      if (slash == 0) return work->done({.status = Status::refused, .failure = no_place()});
      if (work->detours_left-- == 0) {
        return work->done({.status = Status::again,
                           .failure = {errc::unavailable, "the nodes above " + util::quoted(path) +
                                                              " are removed as soon as dlock creates them"}});
      }
      work->missing.push_back(path.substr(0, slash));
      return create(work);
    }
    case Problem::unknown_outcome:
    case Problem::session_over:
    case Problem::not_executed:
      return work->done({.status = Status::again, .failure = requests_.reason_of(outcome.failure)});
    case Problem::no_rights:
    case Problem::other:
      return work->done({.status = Status::refused, .failure = outcome.failure});
  }
}

void Parents::withdraw(const std::string& path) {
  if (kind() == NodeKind::container && requests_.ready()) requests_.remove(path, [](const Outcome&) {});
}

NodeKind Parents::kind() const noexcept {
  return options_.layout == Layout::kazoo ? NodeKind::persistent : NodeKind::container;
}

Failure Parents::no_place() const {
  if (options_.chroot.empty()) return {errc::protocol, "ZooKeeper says that its root does not exist"};
  // Through a session that has it as its root, it cannot be made.
  return {errc::invalid_argument, "path: the ensemble has no node " + util::quoted(options_.chroot) +
                                      "; run dlock init to create it, or omit the path from the URL and use prefix="};
}

}  // namespace dlock::zookeeper
