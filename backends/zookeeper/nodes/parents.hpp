// The nodes above the queues, made when they are missing: containers, which the server removes when they have been
// empty for a while. In kazoo's layout they are plain nodes, which stay: kazoo makes the parents once for each object,
// and every later acquire of that object fails when they are gone.
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
      made,     // it was there just now
      again,    // not known, or not done: worth another try
      refused,  // trying again does not help
    } status;
    Failure failure = {};
    bool by_us = false;  // it was missing
  };
  using Handler = std::function<void(Made)>;

  Parents(Requests& requests, const Options& options) noexcept : requests_(requests), options_(options) {}

  // Makes the node, and what is missing above it; "" is the root, which cannot be made. Only while the session is
  // ready; not answered when that ends.
  void make(const std::string& path, Handler done);
  // What make() made is not needed after all: the server removes only containers that something was in. No effect where
  // another client has put something into it, nor on plain nodes.
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
