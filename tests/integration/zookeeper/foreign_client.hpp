// Another program's own locks: those of Curator and of ZooKeeper's recipe in Java (Debian: libcurator-recipes-java;
// driven in JavaScript by librhino-java, which needs no compiler), and those of kazoo (python3-kazoo). A process has as
// many of them as a test likes, each of which has a thread of its own.
//
//   ForeignClient curator(ForeignClient::Library::curator, server.address());
//   const ForeignLock lock = curator.lock("InterProcessMutex", "/dlock/orders");
//   EXPECT_EQ(lock.ask("acquire"), "held");
//   const ForeignAnswer waiting = another.begin("acquire");
#pragma once

#include <string>
#include <utility>

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
  enum class Library { curator, kazoo };

  // Starts it; what is asked of it waits until it is connected.
  ForeignClient(Library library, const std::string& address);

  // Of a kind that the program knows: mostly the library's name of it (see foreign_client.cpp).
  [[nodiscard]] ForeignLock lock(const std::string& kind, const std::string& path);

 private:
  friend class ForeignLock;
  ForeignAnswer send(const std::string& lock, const std::string& request);

  rig::ScratchDirectory directory_;
  rig::UniqueFd commands_;
  rig::ChildProcess process_;
  int locks_ = 0;
  int requests_ = 0;
};

}  // namespace dlock::test
