// Locks of another program, which has as many of them as a test likes, each in a thread of its own.
//
//   ForeignClient redis_py(python(redis_locks, port));
//   const ForeignLock lock = redis_py.lock("Lock", "orders");
//   EXPECT_EQ(lock.ask("acquire"), "held");
//   const ForeignAnswer waiting = another.begin("acquire");
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "torture/rig/child_process.hpp"
#include "torture/rig/scratch_directory.hpp"
#include "torture/rig/system_call.hpp"

namespace dlock::test {

// What a lock says to a request, now or later.
class ForeignAnswer {
 public:
  [[nodiscard]] bool given() const;
  // Waits for it; throws when the hang guard ends the wait.
  [[nodiscard]] std::string get() const;

 private:
  friend class ForeignClient;
  ForeignAnswer(const rig::ChildProcess& process, int number);

  const rig::ChildProcess* process_;
  std::string mark_;
};

class ForeignClient;

// A handle; the object in the other program lives as long as that.
class ForeignLock {
 public:
  // acquire            "held"
  // try                "held" or "busy": waits for a moment at most; not of every kind
  // release            "free"
  // rounds N NODE      "M alone": acquires, makes and removes the node, releases, N times; nobody else had the node
  //                    there in M of them
  // revoke NODE        "done": Curator's Revoker asks the holder to let go
  // An exception is an answer, too.
  [[nodiscard]] ForeignAnswer begin(const std::string& request) const;
  [[nodiscard]] std::string ask(const std::string& request) const { return begin(request).get(); }
  // Waits until Curator's InterProcessMutex has been asked to let go; false when the hang guard ends the wait.
  [[nodiscard]] bool asked_to_let_go() const;

 private:
  friend class ForeignClient;
  ForeignLock(ForeignClient& client, std::string name) : client_(&client), name_(std::move(name)) {}

  ForeignClient* client_;
  std::string name_;
};

class ForeignClient {
 public:
  // The program and its arguments. It reads lines from the file `commands`, "NUMBER LOCK REQUEST...", the first for
  // each lock being "NUMBER LOCK make KIND PATH", and prints "<NUMBER> ANSWER".
  using Command = std::function<std::vector<std::string>(const std::string& directory, const std::string& commands)>;

  // Starts it; what is asked of it waits until it is connected.
  explicit ForeignClient(const Command& command);

  // Of a kind that the program knows.
  [[nodiscard]] ForeignLock lock(const std::string& kind, const std::string& path);
  // For a program that reads other lines: it prints the number in the same way.
  [[nodiscard]] ForeignAnswer send(const std::function<std::string(int number)>& request);

 private:
  friend class ForeignLock;
  rig::ScratchDirectory directory_;
  rig::UniqueFd commands_;
  rig::ChildProcess process_;
  int locks_ = 0;
  int requests_ = 0;
};

// A program in Python: `locks` has the address as `address`, and defines `kinds`, by name what makes a lock of a path,
// and nobody_else_is_at(node), which leaves a mark for a moment.
[[nodiscard]] ForeignClient::Command python(const std::string& locks, const std::string& address);

}  // namespace dlock::test
