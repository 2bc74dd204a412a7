// The nodes above the queues, created when they are missing: containers, which the server removes some time after they
// became empty. In kazoo's layout they are plain nodes, which stay: kazoo creates the parents once for each object, and
// every later acquire of that object fails if they are gone.
#pragma once

#include <functional>
#include <string>

#include <dlock/error.hpp>

#include "backends/zookeeper/nodes/requests.hpp"
#include "backends/zookeeper/options.hpp"

namespace dlock::zookeeper {

class Parents {
 public:
  struct Made {
    enum class Status {
      made,     // it existed just now
      again,    // not known, or not done: retry
      refused,  // a retry does not help
    } status;
    Failure failure = {};
    bool by_us = false;  // it was missing
  };
  using Handler = std::function<void(Made)>;

  Parents(Requests& requests, const Options& options) noexcept : requests_(requests), options_(options) {}

  // Creates the node, and the missing ones above it; "" is the root, which cannot be created. Only while the session is
  // ready; not answered if that ends.
  void make(const std::string& path, Handler done);
  // The node that make() created is not needed after all: the server removes only containers that were in use. No
  // effect on plain nodes, nor if a different client has used it.
  void withdraw(const std::string& path);

 private:
  struct Work;
  void create(const std::shared_ptr<Work>& work);
  void created(const std::shared_ptr<Work>& work, const Outcome& outcome);
  [[nodiscard]] NodeKind kind() const noexcept;
  [[nodiscard]] Failure no_place() const;

  Requests& requests_;
  const Options& options_;
};

}  // namespace dlock::zookeeper
