#include "network/foreign_client.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <stdexcept>

#include "torture/rig/hang_guard.hpp"

namespace dlock::test {

namespace {

// Reads the requests, each lock's in a thread of its own.
constexpr const char* python_loop = R"py(
import queue, threading

def rounds(lock, count, node):
  alone = 0
  for _ in range(count):
    lock.acquire()
    alone += nobody_else_is_at(node)
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

std::string pipe_in(const rig::ScratchDirectory& directory) {
  return directory.path() + "/commands";
}

// Both ends, so that the program never sees an end of it.
rig::UniqueFd make_pipe(const std::string& path) {
  rig::require(::mkfifo(path.c_str(), S_IRUSR | S_IWUSR), "mkfifo");
  return rig::UniqueFd(rig::require(::open(path.c_str(), O_RDWR | O_CLOEXEC), "open"));
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
  return client_->send([&](int number) { return std::to_string(number) + " " + name_ + " " + request; });
}

bool ForeignLock::asked_to_let_go() const {
  return client_->process_.wait_for_output("<" + name_ + "> is asked to let go\n");
}

ForeignClient::ForeignClient(const Command& command)
    : commands_(make_pipe(pipe_in(directory_))), process_(command(directory_.path(), pipe_in(directory_))) {}

ForeignLock ForeignClient::lock(const std::string& kind, const std::string& path) {
  ForeignLock made(*this, "lock-" + std::to_string(++locks_));
  (void)send([&](int number) { return std::to_string(number) + " " + made.name_ + " make " + kind + " " + path; });
  return made;
}

ForeignAnswer ForeignClient::send(const std::function<std::string(int number)>& request) {
  const int number = ++requests_;
  const std::string line = request(number) + "\n";
  const auto written = rig::require(::write(commands_.get(), line.data(), line.size()), "write");
  if (static_cast<std::size_t>(written) != line.size()) throw std::runtime_error("a pipe took part of a line");
  return {process_, number};
}

ForeignClient::Command python(const std::string& locks, const std::string& address) {
  return [locks, address](const std::string& /*directory*/, const std::string& commands) {
    return std::vector<std::string>{"/usr/bin/python3", "-c",
                                    "import sys\naddress = sys.argv[1]\n" + locks + python_loop, address, commands};
  };
}

}  // namespace dlock::test
