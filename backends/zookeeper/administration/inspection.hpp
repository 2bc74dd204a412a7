// Questions about locks, breaking them, and forgetting their names.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include <dlock/spi/backend.hpp>

#include "backends/zookeeper/nodes/requests.hpp"
#include "backends/zookeeper/options.hpp"

namespace dlock::zookeeper {

// Each answers within the response timeout. In tasks only.
class Inspection {
 public:
  Inspection(Executor& executor, const Options& options, Requests& requests);
  ~Inspection();

  // That the parent of locks may be listed is part of it: a missing node has nothing that could refuse the client.
  void ping(const std::string& name, Backend::Handler<bool> done);
  void inspect(LockKind kind, const std::string& name, Backend::Handler<LockInfo> done);
  void list(LockKind kind, Backend::Handler<std::vector<LockInfo>> done);
  // Removes the nodes of those who hold it.
  void break_lock(LockKind kind, const std::string& name, Backend::Handler<bool> done);
  // Removes the node of the lock, at any time: tokens are the ensemble's.
  void forget(const Forgetting& what, Backend::Handler<std::vector<std::string>> done);

  void session_ready();
  // Trying again does not help.
  void session_refused(const Failure& why);

 private:
  class AnyQuestion;
  template <class T>
  class Question;
  // A lock that is asked about.
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
  // What is to be seen of a lock.
  struct Sight {
    bool exists = false;
    std::vector<Holder> holders;
    std::size_t members = 0;
    std::uint32_t permits = 0;     // of those who hold it or wait
    bool looks_like_data = false;  // of another program
    [[nodiscard]] bool held() const noexcept { return !holders.empty(); }
  };
  // How old an answer may be: of_session where something of this session has been answered since the question was
  // asked.
  enum class Age { of_question, of_session };
  using SightHandler = std::function<void(Result<Sight>)>;

  [[nodiscard]] Subject subject(LockKind kind, const std::string& name) const;
  // The node below which the locks of that kind are.
  [[nodiscard]] std::string parent_of(LockKind kind) const;
  [[nodiscard]] std::vector<std::string> names_among(const std::vector<std::string>& children) const;
  void when_ready(const AnyQuestion& question, std::function<void()> ask);
  void look(const Subject& lock, int attempts_left, Age age, SightHandler done);
  void look_at_queue(const Subject& lock, Sight sight, const std::vector<std::string>& children, int attempts_left,
                     SightHandler done);
  void look_at_holders(const Subject& lock, Sight sight, int attempts_left, SightHandler done);
  void looked_at_holders(const Subject& lock, Sight sight, int attempts_left, const SightHandler& done);
  void break_one(const Subject& lock, int attempts_left, const std::shared_ptr<Question<bool>>& question);
  void remove_holders(const std::vector<Holder>& holders, Backend::Handler<bool> done);
  void forget_one(const Subject& lock, int attempts_left,
                  const std::shared_ptr<Question<std::vector<std::string>>>& question);
  [[nodiscard]] LockInfo info_of(const Subject& lock, const Sight& sight) const;

  Executor& executor_;
  const Options& options_;
  Requests& requests_;
  std::set<std::shared_ptr<AnyQuestion>> open_;                            // not answered yet
  std::unordered_map<const AnyQuestion*, std::function<void()>> waiting_;  // for a session
};

}  // namespace dlock::zookeeper
