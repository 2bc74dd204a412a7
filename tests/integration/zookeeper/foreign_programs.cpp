#include <fstream>
#include <stdexcept>
#include <vector>

#include "zookeeper/interoperation_test.hpp"

namespace dlock::test {

namespace {

constexpr const char* curator_program = R"js(
importPackage(java.io, java.lang, java.util.concurrent);
importPackage(Packages.org.apache.curator.framework, Packages.org.apache.curator.framework.recipes.leader);
importPackage(Packages.org.apache.curator.framework.recipes.locks, Packages.org.apache.curator.retry);
importClass(Packages.org.apache.zookeeper.CreateMode);
importClass(Packages.org.apache.zookeeper.ZooDefs);
importClass(Packages.org.apache.zookeeper.KeeperException);
var Recipe = Packages.org.apache.zookeeper.recipes.lock;

var client = CuratorFrameworkFactory.newClient(arguments[0], 60000, 15000, new RetryForever(10));
client.start();
client.blockUntilConnected();

function say(mark, text) { System.out.println("<" + mark + "> " + text); }

function mutex(lock) {
  return {
    acquire: function() { lock.acquire(); },
    attempt: function() { return lock.acquire(20, TimeUnit.MILLISECONDS); },
    release: function() { lock.release(); },
  };
}
var kinds = {
  InterProcessMutex: function(path, name) {
    var lock = new InterProcessMutex(client, path);
    lock.makeRevocable(function() { say(name, "is asked to let go"); });
    return mutex(lock);
  },
  InterProcessSemaphoreMutex: function(path) { return mutex(new InterProcessSemaphoreMutex(client, path)); },
  readLock: function(path) { return mutex(new InterProcessReadWriteLock(client, path).readLock()); },
  writeLock: function(path) { return mutex(new InterProcessReadWriteLock(client, path).writeLock()); },
  InterProcessSemaphoreV2: function(path) {
    var semaphore = new InterProcessSemaphoreV2(client, path, 1), lease;
    return {
      acquire: function() { lease = semaphore.acquire(); },
      release: function() { semaphore.returnLease(lease); },
    };
  },
  LeaderLatch: function(path) {
    var latch = new LeaderLatch(client, path);
    function is_there() {
      for (var at = client.getChildren().forPath(path).iterator(); at.hasNext();) {
        if (String(at.next()).indexOf("latch") >= 0) return true;
      }
      return false;
    }
    return {
      acquire: function() { latch.start(); latch.await(); },
      release: function() { for (latch.close(); is_there();); },  // its node goes in the background
    };
  },
  // Of ZooKeeper's own recipes.
  WriteLock: function(path) {
    var held = new CountDownLatch(1), zookeeper = client.getZookeeperClient().getZooKeeper();
    var listener = {lockAcquired: function() { held.countDown(); }, lockReleased: function() {}};
    var lock = new Recipe.WriteLock(zookeeper, path, ZooDefs.Ids.OPEN_ACL_UNSAFE,
                                    new JavaAdapter(Recipe.LockListener, listener));
    return {
      acquire: function() { lock.lock(); held.await(); },
      attempt: function() { return lock.lock() || (lock.unlock(), false); },
      release: function() { lock.unlock(); },
    };
  },
};
function rounds(lock, count, node) {
  for (var alone = 0, i = 0; i < count; ++i) {
    lock.acquire();
    try {
      client.create().withMode(CreateMode.EPHEMERAL).forPath(node);
      ++alone;
      client["delete"]().forPath(node);
    } catch (e) {
      if (!(e.javaException instanceof KeeperException.NodeExistsException)) throw e;
    }
    lock.release();
  }
  return alone + " alone";
}
function carry_out(lock, request) {
  switch (String(request[2])) {
    case "acquire": lock.acquire(); return "held";
    case "try": return lock.attempt() ? "held" : "busy";
    case "release": lock.release(); return "free";
    case "rounds": return rounds(lock, request[3], request[4]);
    case "revoke": Revoker.attemptRevoke(client, request[3]); return "done";
  }
}
function start(request) {
  var requests = new LinkedBlockingQueue(), lock = kinds[request[3]](request[4], request[1]);
  new Thread(function() {
    for (;;) {
      var next = requests.take(), answer;
      try { answer = carry_out(lock, next); } catch (e) { answer = e; }
      say(next[0], answer);
    }
  }).start();
  return requests;
}
var locks = {}, line, commands = new BufferedReader(new FileReader(arguments[1]));
while ((line = commands.readLine()) != null) {
  var request = String(line).split(" ");
  if (request[2] == "make") locks[request[1]] = start(request);
  else locks[request[1]].put(request);
}
)js";

constexpr const char* kazoo_locks = R"py(
import logging
from kazoo.client import KazooClient
from kazoo.exceptions import NodeExistsError
from kazoo.recipe.lock import Lock

logging.basicConfig()
zk = KazooClient(hosts=address, timeout=60)
zk.start()

# As the document of the backend has it.
class CuratorLock(Lock):
  _NODE_NAME = "-lock-"
  _EXCLUDE_NAMES = ["-lock-"]
  assured_path = property(lambda self: False, lambda self, made: None)

kinds = {
  "Lock": lambda path: zk.Lock(path, "kazoo"),
  "ReadLock": lambda path: zk.ReadLock(path, "kazoo"),
  "WriteLock": lambda path: zk.WriteLock(path, "kazoo"),
  "CuratorLock": lambda path: CuratorLock(zk, path, "kazoo"),
  "PatternLock": lambda path: zk.Lock(path, "kazoo", extra_lock_patterns=["-lock-"]),
  "Semaphore": lambda path: zk.Semaphore(path, "kazoo", max_leases=1),
}

def nobody_else_is_at(node):
  try:
    zk.create(node, ephemeral=True)
  except NodeExistsError:
    return False
  zk.delete(node)
  return True
)py";

// The rest is named in the archives themselves.
constexpr const char* class_path =
    "/usr/share/java/curator-recipes.jar:/usr/share/java/curator-framework.jar:/usr/share/java/zookeeper.jar:"
    "/usr/share/java/zookeeper-recipes-lock.jar:/usr/share/java/slf4j-nop.jar:/usr/share/java/js.jar";

}  // namespace

ForeignClient::Command curator(const std::string& address) {
  return [address](const std::string& directory, const std::string& commands) -> std::vector<std::string> {
    const std::string program = directory + "/curator.js";
    if (!(std::ofstream(program) << curator_program).flush()) throw std::runtime_error("cannot write " + program);
    return {"java",
            "-Xshare:auto",
            "-XX:+UseSerialGC",
            "-XX:-UsePerfData",
            "-XX:TieredStopAtLevel=1",
            "-Xmx128m",
            "-cp",
            class_path,
            "org.mozilla.javascript.tools.shell.Main",
            "-opt",
            "-1",  // interpreted: quick to start
            program,
            address,
            commands};
  };
}

ForeignClient::Command kazoo(const std::string& address) {
  return python(kazoo_locks, address);
}

}  // namespace dlock::test
