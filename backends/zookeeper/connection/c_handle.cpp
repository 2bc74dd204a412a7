#include "backends/zookeeper/connection/c_handle.hpp"

#include <zookeeper/zookeeper.h>

#include <algorithm>
#include <cerrno>
#include <system_error>
#include <utility>

#include "backends/zookeeper/connection/c_channel.hpp"
#include "backends/zookeeper/connection/errors.hpp"
#include "util/mutex.hpp"
#include "util/per_process.hpp"
#include "util/signals_blocked.hpp"

namespace dlock::zookeeper {

namespace {

// A server that answers at all has done so by then.
constexpr std::chrono::seconds longest_drain(1);

void ignore_log(const char* /*message*/) {}
void ignore_auth(int /*code*/, const void* /*data*/) {}  // an event follows where it failed

void* context_of(Handle::WatchId watch) {
  static_assert(sizeof(Handle::WatchId) == sizeof(void*));
  return reinterpret_cast<void*>(watch);  // never followed, so NOLINT(performance-no-int-to-ptr)
}

watcher_fn watcher_of(Handle::WatchId watch) {
  return watch == 0 ? nullptr : on_watch;
}

std::string why_not_opened(int error) {
  if (error == ENOENT || error == EINVAL) return "a host name has no address";
  return "the client library could not start: " + std::system_category().message(error);
}

// While there is one of these, the library takes hosts in the order of their list; else it shuffles them. It can be
// told so for the whole process only. So it is told just while a list of ours is read, and what else the program opens
// at that moment goes to its hosts in order, too.
class HostsInOrder {
 public:
  HostsInOrder() { count(+1); }
  HostsInOrder(const HostsInOrder&) = delete;
  HostsInOrder& operator=(const HostsInOrder&) = delete;
  ~HostsInOrder() { count(-1); }

 private:
  struct Users {
    util::Mutex mutex;
    int count DLOCK_GUARDED_BY(mutex) = 0;
  };
  static void count(int change) {
    static constinit util::PerProcess<Users> this_process;
    Users& users = this_process.get();
    const util::MutexLock lock(users.mutex);
    users.count += change;
    zoo_deterministic_conn_order(users.count > 0 ? 1 : 0);
  }
};

// Opens, on a thread of ours: resolving the names may take long. nullptr: `error` says why.
zhandle_t* open_library(LibraryChannel& channel, const std::string& hosts, int timeout,
                        const std::optional<std::string>& digest, int& error) {
  const auto init = [&] {
    const HostsInOrder in_order;
    return zookeeper_init2(hosts.c_str(), on_session_event, timeout, nullptr, &channel, ZOO_NO_LOG_CLIENTENV,
                           ignore_log);
  };
  zhandle_t* const library = init();
  if (library == nullptr) {
    error = errno;
    return nullptr;
  }
  // Else it would resolve all names again on every turn of its loop. Refused only for nonsense.
  (void)zoo_set_servers_resolution_delay(library, -1);
  if (!digest) return library;
  // Only remembered now, and sent in front of everything else whenever a connection stands. It is refused where an
  // attempt to connect has failed already.
  const int size = static_cast<int>(digest->size());
  if (zoo_add_auth(library, "digest", digest->data(), size, ignore_auth, nullptr) == ZOK) return library;
  (void)zookeeper_close(library);  // there is no session that could be left behind
  error = ECONNREFUSED;
  return nullptr;
}

// For a blocking call of the library. False: the system has no thread left.
template <class Function>
bool start(std::thread& thread, Function function) {
  const util::SignalsBlocked signals;
  try {
    thread = std::thread(std::move(function));
    return true;
  } catch (const std::system_error&) {
    return false;
  }
}

LibraryOperation::Answer without_value(Handle::DoneHandler done) {
  return [done = std::move(done)](const Outcome& outcome, LibraryOperation&) { done(outcome); };
}

}  // namespace

// --- Opening and closing ---------------------------------------------------------------------------------------------

CHandle::CHandle(Executor& executor, const Options& options, Listener& listener)
    : executor_(executor),
      options_(options),
      listener_(&listener),
      channel_(std::make_shared<LibraryChannel>(executor, static_cast<LibraryChannel::Receiver&>(*this))),
      drain_timer_(executor) {
  open();
}

CHandle::~CHandle() {
  if (!closing_begun_) close_in_background();
  channel_->leave();
  for (std::thread* const thread : {&opening_, &closing_}) {
    if (thread->joinable()) thread->detach();
  }
}

void CHandle::open() {
  const auto open = [channel = channel_, hosts = options_.connect_string(), digest = options_.digest,
                     timeout = static_cast<int>(options_.session_timeout.count())] {
    int error = 0;
    zhandle_t* const library = open_library(*channel, hosts, timeout, digest, error);
    if (library != nullptr && !channel->hand_over(library)) (void)zookeeper_close(library);  // none is left to tell
    channel->put({.kind = LibraryArrival::Kind::opened, .error = error});
  };
  if (!start(opening_, open)) channel_->put({.kind = LibraryArrival::Kind::opened, .error = EAGAIN});
}

void CHandle::opened(int error) {
  if (opening_.joinable()) opening_.join();  // it is about to end
  library_ = channel_->library();
  if (library_ != nullptr) return;
  problem_ = {errc::unavailable, why_not_opened(error)};
  listener_->session_event(Event::failed);
}

bool CHandle::waits_for_server() const noexcept {
  if (library_ == nullptr) return false;
  const int state = zoo_state(library_);
  return state == ZOO_CONNECTING_STATE || state == ZOO_ASSOCIATING_STATE;
}

void CHandle::close(std::function<void()> done) {
  listener_ = nullptr;
  closed_ = std::move(done);
  fail_all();
  drain();
}

// The library sends the end of the session and, where something can be read, closes the connection at once. A server
// that is still answering then fails to write, drops the connection without having read that, and keeps the session
// until its timeout. So nothing is left to be answered before.
void CHandle::drain() {
  if (!connected_ || operations_.empty()) return close_in_background();
  drain_timer_.arm(saturating_add(executor_.now(), longest_drain), [this] { close_in_background(); });
}

void CHandle::drained(const LibraryArrival& arrival) {
  if (closing_begun_) return;
  if (arrival.kind == LibraryArrival::Kind::completed) operations_.erase(arrival.id);
  // Should the connection break, there is nothing to wait for.
  if (operations_.empty() || arrival.kind == LibraryArrival::Kind::session) close_in_background();
}

// Kept here until they are called, not in the task: what they hold must not outlive us.
void CHandle::fail_all() {
  for (auto& [id, operation] : operations_) {
    failing_.emplace_back(Outcome{.problem = Problem::session_over,
                                  .failure = failure_of(ZSESSIONEXPIRED, operation->path),
                                  .sent = operation->sent},
                          std::exchange(operation->answer, nullptr));
  }
  channel_->post([this, life = lifetime_.watch()] {
    while (!life.over() && !failing_.empty()) {
      const auto [outcome, answer] = std::move(failing_.front());
      failing_.pop_front();
      LibraryOperation nothing;  // the real one is still the library's
      answer(outcome, nothing);
    }
  });
}

void CHandle::close_in_background() {
  closing_begun_ = true;
  drain_timer_.disarm();
  library_ = nullptr;
  zhandle_t* const library = channel_->take_for_closing();
  // Nothing to close, or it is done by the thread that opens.
  if (library == nullptr) return channel_->post([this] { report_closed(); });
  // The library loses answers when it is closed; until that returns it may still write to these.
  for (auto& [id, operation] : operations_) operation->answer = nullptr;  // what it holds is for tasks
  const auto operations = std::make_shared<Operations>(std::exchange(operations_, {}));
  const auto close = [this, channel = channel_, library, operations] {
    (void)zookeeper_close(library);  // what it could say is that the server did not answer
    channel->post([this] {
      if (closing_.joinable()) closing_.join();  // it is about to end
      report_closed();
    });
  };
  // Better slow than a session that is never closed.
  if (!start(closing_, close)) close();
}

void CHandle::report_closed() {
  if (const auto closed = std::exchange(closed_, nullptr)) closed();
}

// --- Requests --------------------------------------------------------------------------------------------------------

template <class Call>
void CHandle::submit(const std::string& path, LibraryOperation::Answer answer, Call call) {
  const std::uint64_t id = ++last_operation_;
  LibraryOperation& operation = *operations_.emplace(id, std::make_unique<LibraryOperation>()).first->second;
  operation.channel = channel_.get();
  operation.id = id;
  operation.path = path;
  operation.sent = executor_.now();
  operation.answer = std::move(answer);
  // What the library refuses in the call is answered like everything else.
  const int code = library_ == nullptr ? ZINVALIDSTATE : call(&operation);
  if (code != ZOK) announce(operation, code);
}

const ACL_vector* CHandle::rights() const noexcept {
  return options_.digest ? &ZOO_CREATOR_ALL_ACL : &ZOO_OPEN_ACL_UNSAFE;
}

void CHandle::create(const std::string& path, const std::string& data, NodeKind kind, Handler<Created> done) {
  // Without the name of the node, which is new for each attempt, so that the message stays the same.
  const std::string shown = kind == NodeKind::ephemeral_sequential ? path.substr(0, path.rfind('/')) : path;
  const int mode = kind == NodeKind::ephemeral              ? ZOO_EPHEMERAL
                   : kind == NodeKind::ephemeral_sequential ? ZOO_EPHEMERAL_SEQUENTIAL
                   : kind == NodeKind::container            ? ZOO_CONTAINER
                                                            : ZOO_PERSISTENT;
  const auto answer = [done = std::move(done)](const Outcome& outcome, LibraryOperation& came) {
    done(outcome, {std::move(came.text), came.stat});
  };
  submit(shown, answer, [&](LibraryOperation* operation) {
    return zoo_acreate2(library_, path.c_str(), data.data(), static_cast<int>(data.size()), rights(), mode, on_created,
                        operation);
  });
}

void CHandle::get(const std::string& path, WatchId watch, Handler<Node> done) {
  const auto answer = [done = std::move(done)](const Outcome& outcome, LibraryOperation& came) {
    done(outcome, {std::move(came.text), came.stat});
  };
  submit(path, answer, [&](LibraryOperation* operation) {
    return zoo_awget(library_, path.c_str(), watcher_of(watch), context_of(watch), on_data, operation);
  });
}

void CHandle::exists(const std::string& path, WatchId watch, Handler<Stat> done) {
  const auto answer = [done = std::move(done)](const Outcome& outcome, LibraryOperation& came) {
    done(outcome, came.stat);
  };
  submit(path, answer, [&](LibraryOperation* operation) {
    return zoo_awexists(library_, path.c_str(), watcher_of(watch), context_of(watch), on_stat, operation);
  });
}

void CHandle::children(const std::string& path, WatchId watch, Handler<std::vector<std::string>> done) {
  const auto answer = [done = std::move(done)](const Outcome& outcome, LibraryOperation& came) {
    done(outcome, std::move(came.names));
  };
  submit(path, answer, [&](LibraryOperation* operation) {
    return zoo_awget_children(library_, path.c_str(), watcher_of(watch), context_of(watch), on_strings, operation);
  });
}

void CHandle::set(const std::string& path, const std::string& data, DoneHandler done) {
  submit(path, without_value(std::move(done)), [&](LibraryOperation* operation) {
    return zoo_aset(library_, path.c_str(), data.data(), static_cast<int>(data.size()), -1, on_stat, operation);
  });
}

void CHandle::remove(const std::string& path, DoneHandler done) {
  submit(path, without_value(std::move(done)),
         [&](LibraryOperation* operation) { return zoo_adelete(library_, path.c_str(), -1, on_done, operation); });
}

// ZooKeeper has no such request, but an ephemeral node takes no child, not even for the time of a transaction.
void CHandle::remove_childless(const std::string& path, DoneHandler done) {
  submit(path, without_value(std::move(done)), [&](LibraryOperation* operation) {
    const std::string child = path + "/forgotten";
    std::array<zoo_op_t, 3> steps{};
    zoo_create_op_init(steps.data(), child.c_str(), nullptr, -1, rights(), ZOO_PERSISTENT, nullptr, 0);
    zoo_delete_op_init(&steps[1], child.c_str(), -1);
    zoo_delete_op_init(&steps[2], path.c_str(), -1);
    return zoo_amulti(library_, static_cast<int>(steps.size()), steps.data(), operation->results.data(), on_done,
                      operation);
  });
}

void CHandle::sync(const std::string& path, DoneHandler done) {
  submit(path, without_value(std::move(done)),
         [&](LibraryOperation* operation) { return zoo_async(library_, path.c_str(), on_string, operation); });
}

// --- What arrives ----------------------------------------------------------------------------------------------------

void CHandle::arrived(const LibraryArrival& arrival) {
  if (listener_ == nullptr) return drained(arrival);
  switch (arrival.kind) {
    case LibraryArrival::Kind::opened:
      return opened(arrival.error);
    case LibraryArrival::Kind::completed:
      return completed(arrival.id);
    case LibraryArrival::Kind::watch:
      return listener_->watch_fired(arrival.id);
    case LibraryArrival::Kind::session:
      return session_event(arrival);
  }
}

void CHandle::completed(std::uint64_t id) {
  const auto found = operations_.extract(id);
  if (!found) return;
  LibraryOperation& operation = *found.mapped();
  const Outcome outcome{.problem = problem_of(operation.code),
                        .failure = failure_of(operation.code, operation.path),
                        .sent = operation.sent};
  const auto answer = std::move(operation.answer);
  answer(outcome, operation);
}

void CHandle::session_event(const LibraryArrival& arrival) {
  switch (arrival.event) {
    case Event::connected:
      connected_ = true;
      session_ = arrival.session;
      timeout_ = arrival.timeout;
      break;
    case Event::disconnected:
      if (!std::exchange(connected_, false)) return;  // it reports each attempt
      problem_ = {errc::unavailable, "the connection broke"};
      break;
    case Event::expired:
      problem_ = {errc::unavailable, "the servers ended it (ZSESSIONEXPIRED)"};
      break;
    case Event::auth_failed:
      problem_ = {errc::access_denied, "the servers refused the identity in auth= (ZAUTHFAILED)"};
      break;
    case Event::failed:
      return;  // not from a server
  }
  listener_->session_event(arrival.event);
}

std::unique_ptr<Handle> make_c_handle(Executor& executor, const Options& options, Handle::Listener& listener) {
  return std::make_unique<CHandle>(executor, options, listener);
}

}  // namespace dlock::zookeeper
