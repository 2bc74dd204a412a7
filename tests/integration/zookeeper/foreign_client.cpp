#include "zookeeper/foreign_client.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>
#include <stdexcept>
#include <utility>
#include <vector>

#include "torture/rig/hang_guard.hpp"

namespace dlock::test {

namespace {

// Both read lines from a pipe, "NUMBER LOCK REQUEST...", the first for each lock being "NUMBER LOCK make KIND PATH",
// and print "<NUMBER> ANSWER".
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
    return {acquire: function() { latch.start(); latch.await(); }, release: function() { latch.close(); }};
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

constexpr const char* kazoo_program = R"py(
import logging, queue, sys, threading
from kazoo.client import KazooClient
from kazoo.exceptions import NodeExistsError
from kazoo.recipe.lock import Lock

logging.basicConfig()
zk = KazooClient(hosts=sys.argv[1], timeout=60)
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

def rounds(lock, count, node):
  alone = 0
  for _ in range(count):
    lock.acquire()
    try:
      zk.create(node, ephemeral=True)
      alone += 1
      zk.delete(node)
    except NodeExistsError:
      pass
    lock.release()
  return "%d alone" % alone

def carry_out(lock, verb, *arguments):
  if verb == "acquire":
    return "held" if lock.acquire() else "busy"
  if verb == "try":
    return "held" if lock.acquire(blocking=False) else "busy"
  if verb == "release":
    lock.release()
    return "free"
  if verb == "rounds":
    return rounds(lock, int(arguments[0]), arguments[1])

def serve(lock, requests):
  while True:
    number, *request = requests.get()
    try:
      answer = carry_out(lock, *request)
    except Exception as e:
      answer = repr(e)
    sys.stdout.write("<%s> %s\n" % (number, answer))
    sys.stdout.flush()

locks = {}
for line in open(sys.argv[2]):
  number, name, *request = line.split()
  if request[0] == "make":
    locks[name] = queue.Queue()
    threading.Thread(target=serve, args=(kinds[request[1]](request[2]), locks[name]), daemon=True).start()
  else:
    locks[name].put([number] + request)
)py";

// The rest is named in the archives themselves.
constexpr const char* class_path =
    "/usr/share/java/curator-recipes.jar:/usr/share/java/curator-framework.jar:/usr/share/java/zookeeper.jar:"
    "/usr/share/java/zookeeper-recipes-lock.jar:/usr/share/java/slf4j-nop.jar:/usr/share/java/js.jar";

std::string pipe_in(const rig::ScratchDirectory& directory) {
  return directory.path() + "/commands";
}

// Both ends, so that the program never sees an end of it.
rig::UniqueFd make_pipe(const std::string& path) {
  rig::require(::mkfifo(path.c_str(), S_IRUSR | S_IWUSR), "mkfifo");
  return rig::UniqueFd(rig::require(::open(path.c_str(), O_RDWR | O_CLOEXEC), "open"));
}

std::vector<std::string> command(ForeignClient::Library library, const std::string& address,
                                 const rig::ScratchDirectory& directory) {
  if (library == ForeignClient::Library::kazoo) {
    return {"/usr/bin/python3", "-c", kazoo_program, address, pipe_in(directory)};
  }
  const std::string program = directory.path() + "/curator.js";
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
          pipe_in(directory)};
}

}  // namespace

ForeignAnswer::ForeignAnswer(const rig::ChildProcess& process, int number)
    : process_(&process), mark_("<" + std::to_string(number) + "> ") {}

bool ForeignAnswer::given() const {
  return process_->output().find(mark_) != std::string::npos;
}

std::string ForeignAnswer::get() const {
  std::string answer;
  const auto complete = [&](const std::string& output) {
    const auto start = output.find(mark_);
    const auto end = output.find('\n', start);
    if (start == std::string::npos || end == std::string::npos) return false;
    answer = output.substr(start + mark_.size(), end - start - mark_.size());
    return true;
  };
  if (process_->wait_until(complete, rig::hang_guard)) return answer;
  throw std::runtime_error("hang: no answer " + mark_ + "\n" + process_->output());
}

ForeignAnswer ForeignLock::begin(const std::string& request) const {
  return client_->send(name_, request);
}

bool ForeignLock::asked_to_let_go() const {
  return client_->process_.wait_for_output("<" + name_ + "> is asked to let go\n");
}

ForeignClient::ForeignClient(Library library, const std::string& address)
    : commands_(make_pipe(pipe_in(directory_))), process_(command(library, address, directory_)) {}

ForeignLock ForeignClient::lock(const std::string& kind, const std::string& path) {
  ForeignLock made(*this, "lock-" + std::to_string(++locks_));
  (void)send(made.name_, "make " + kind + " " + path);  // not answered
  return made;
}

ForeignAnswer ForeignClient::send(const std::string& lock, const std::string& request) {
  const int number = ++requests_;
  const std::string line = std::to_string(number) + " " + lock + " " + request + "\n";
  const auto written = rig::require(::write(commands_.get(), line.data(), line.size()), "write");
  if (static_cast<std::size_t>(written) != line.size()) throw std::runtime_error("a pipe took part of a line");
  return {process_, number};
}

}  // namespace dlock::test
