#include "backends/zookeeper/connection/c_handle.hpp"

#include <zookeeper/zookeeper.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <system_error>
#include <utility>

#include "backends/zookeeper/connection/errors.hpp"
#include "util/mutex.hpp"
#include "util/per_process.hpp"
#include "util/signals_blocked.hpp"

namespace dlock::zookeeper {

namespace {

// A server that answers at all does so within this time.
constexpr std::chrono::seconds longest_drain(1);

void ignore_log(const char* /*message*/) {}
void ignore_auth(int /*code*/, const void* /*data*/) {}  // if it failed, an event follows

// --- On the library's threads ----------------------------------------------------------------------------------------

// The channel is the context of the handle; the data of a request is its operation; the context of a watch is its id,
// never followed.
LibraryOperation& operation_of(const void* data) {
  return *static_cast<LibraryOperation*>(const_cast<void*>(data));
}

// Posts the only answer that will come.
void announce(LibraryOperation& operation, int code) {
  operation.code = code;
  operation.channel->post([id = operation.id](CHandle& handle) { handle.completed(id); });
}

void on_session_event(zhandle_t* library, int type, int state, const char* /*path*/, void* channel) {
  if (type != ZOO_SESSION_EVENT) return;
  using Event = Handle::Event;
  CHandle::SessionEvent event{Event::disconnected, {errc::unavailable, "the connection broke"}};
  if (state == ZOO_CONNECTED_STATE) {
    event = {.event = Event::connected,
             .session = zoo_client_id(library)->client_id,
             .timeout = std::chrono::milliseconds(zoo_recv_timeout(library))};
  } else if (state == ZOO_EXPIRED_SESSION_STATE) {
    event = {Event::expired, {errc::unavailable, "the servers ended it (ZSESSIONEXPIRED)"}};
  } else if (state == ZOO_AUTH_FAILED_STATE) {
    event = {Event::auth_failed, {errc::access_denied, "the servers refused the identity in auth= (ZAUTHFAILED)"}};
  }
  static_cast<LibraryChannel*>(channel)->post([event](CHandle& handle) { handle.session_event(event); });
}

// Watches also get events of the session, which do not use them up.
void on_watch(zhandle_t* library, int type, int /*state*/, const char* /*path*/, void* context) {
  if (type == ZOO_SESSION_EVENT) return;
  auto* const channel = static_cast<LibraryChannel*>(const_cast<void*>(zoo_get_context(library)));
  channel->post([id = reinterpret_cast<std::uintptr_t>(context)](CHandle& handle) { handle.watch_fired(id); });
}

void on_node(int code, const char* value, int size, const ::Stat* stat, const void* data) {
  LibraryOperation& operation = operation_of(data);
  if (code == ZOK && value != nullptr && size > 0) operation.text.assign(value, static_cast<std::size_t>(size));
  if (code == ZOK && stat != nullptr) {
    operation.stat = {.created = stat->czxid, .owner = stat->ephemeralOwner, .children = stat->numChildren};
  }
  announce(operation, code);
}

void on_created(int code, const char* path, const ::Stat* stat, const void* data) {
  on_node(code, path, path == nullptr ? 0 : static_cast<int>(std::strlen(path)), stat, data);
}

void on_stat(int code, const ::Stat* stat, const void* data) {
  on_node(code, nullptr, 0, stat, data);
}

void on_strings(int code, const String_vector* strings, const void* data) {
  LibraryOperation& operation = operation_of(data);
  if (code == ZOK && strings != nullptr && strings->count > 0) {
    operation.names.assign(strings->data, strings->data + strings->count);
  }
  announce(operation, code);
}

void on_string(int code, const char* /*value*/, const void* data) {
  announce(operation_of(data), code);
}

void on_done(int code, const void* data) {
  announce(operation_of(data), code);
}

void* context_of(Handle::WatchId watch) {
  static_assert(sizeof(Handle::WatchId) == sizeof(void*));
  return reinterpret_cast<void*>(watch);  // never followed, so NOLINT(performance-no-int-to-ptr)
}

watcher_fn watcher_of(Handle::WatchId watch) {
  return watch == 0 ? nullptr : on_watch;
}

// --- On threads of ours ----------------------------------------------------------------------------------------------

std::string why_not_opened(int error) {
  if (error == ENOENT || error == EINVAL) return "a host name has no address";
  return "the client library could not start: " + std::system_category().message(error);
}

// While one of these exists, the library tries hosts in the order of their list; otherwise it shuffles them. The
// setting is one for the whole process, so it is set only while a list of dlock's is read. A list that the rest of the
// program opens at that moment keeps its order, too.
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

// Opens the library on a thread of its own, because resolving names may take long. nullptr: `error` has the reason.
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
  // Otherwise the library resolves all names again in each turn of its loop. Refused only for invalid arguments.
  (void)zoo_set_servers_resolution_delay(library, -1);
  if (!digest) return library;
  // Only stored now, and sent first on each connection. Refused if an attempt to connect has failed already.
  const int size = static_cast<int>(digest->size());
  if (zoo_add_auth(library, "digest", digest->data(), size, ignore_auth, nullptr) == ZOK) return library;
  (void)zookeeper_close(library);  // there is no session yet
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

}  // namespace

// --- Opening and closing ---------------------------------------------------------------------------------------------

CHandle::CHandle(Executor& executor, const Options& options, Listener& listener)
    : executor_(executor),
      options_(options),
      listener_(&listener),
      channel_(std::make_shared<LibraryChannel>(executor, *this)),
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
    if (library != nullptr && !channel->hand_over(library)) {
      (void)zookeeper_close(library);  // there is no handle left to notify
      return;
    }
    channel->post([library, error](CHandle& handle) { handle.opened(library, error); });
  };
  if (!start(opening_, open)) channel_->post([](CHandle& handle) { handle.opened(nullptr, EAGAIN); });
}

void CHandle::opened(zhandle_t* library, int error) {
  if (opening_.joinable()) opening_.join();  // it is about to end
  if (closing_begun_) return;
  library_ = library;
  if (library_ == nullptr && listener_ != nullptr) {
    return listener_->session_event(Event::failed, {errc::unavailable, why_not_opened(error)});
  }
  if (const auto event = std::exchange(early_, std::nullopt)) session_event(*event);
}

bool CHandle::waits_for_server() const noexcept {
  if (library_ == nullptr) return false;
  const int state = zoo_state(library_);
  return state == ZOO_CONNECTING_STATE || state == ZOO_ASSOCIATING_STATE;
}

void CHandle::close(std::function<void()> done) {
  listener_ = nullptr;
  closed_ = std::move(done);
  channel_->post([](CHandle& handle) { handle.fail_all(); });
}

// Each handler may destroy the handle.
void CHandle::fail_all() {
  const auto life = lifetime_.watch();
  for (auto& [id, operation] : operations_) {
    const auto answer = std::exchange(operation->answer, nullptr);
    LibraryOperation nothing;  // the library still has the real one
    answer(outcome_of(*operation), nothing);
    if (life.over()) return;
  }
  drain();
}

Outcome CHandle::outcome_of(const LibraryOperation& operation) const {
  const int code = listener_ == nullptr ? ZSESSIONEXPIRED : operation.code;
  return {.problem = problem_of(code), .failure = failure_of(code, operation.path), .sent = operation.sent};
}

// The library sends the end of the session and, if there is data to read, closes the connection at once. A server that
// is still answering then fails to write, drops the connection before it reads that, and keeps the session until its
// timeout. So all answers must have arrived before.
void CHandle::drain() {
  if (!connected_ || operations_.empty()) return close_in_background();
  drain_timer_.arm(saturating_add(executor_.now(), longest_drain), [this] { close_in_background(); });
}

void CHandle::close_in_background() {
  closing_begun_ = true;
  drain_timer_.disarm();
  library_ = nullptr;
  zhandle_t* const library = channel_->take_for_closing();
  // Nothing to close, or the opening thread closes it.
  if (library == nullptr) return channel_->post([](CHandle& handle) { handle.report_closed(); });
  // Closing the library drops answers; until it returns, the library may still write to the operations.
  for (auto& [id, operation] : operations_) operation->answer = nullptr;  // what it holds is for tasks
  const auto operations = std::make_shared<Operations>(std::exchange(operations_, {}));
  const auto close = [channel = channel_, library, operations] {
    (void)zookeeper_close(library);  // it can only fail because the server did not answer
    channel->post([](CHandle& handle) { handle.report_closed(); });
  };
  // Blocking here is better than a session that is never closed.
  if (!start(closing_, close)) close();
}

void CHandle::report_closed() {
  if (closing_.joinable()) closing_.join();  // it is about to end
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
  // A request that the library refuses at once is answered like all others.
  const int code = library_ == nullptr ? ZINVALIDSTATE : call(&operation);
  if (code != ZOK) announce(operation, code);
}

const ACL_vector* CHandle::rights() const noexcept {
  return options_.digest ? &ZOO_CREATOR_ALL_ACL : &ZOO_OPEN_ACL_UNSAFE;
}

void CHandle::create(const std::string& path, const std::string& data, NodeKind kind, Handler<Created> done) {
  // Without the node's name, which is new for each attempt, so that the message stays the same.
  const std::string shown = kind == NodeKind::ephemeral_sequential ? path.substr(0, path.rfind('/')) : path;
  const int mode = kind == NodeKind::ephemeral              ? ZOO_EPHEMERAL
                   : kind == NodeKind::ephemeral_sequential ? ZOO_EPHEMERAL_SEQUENTIAL
                   : kind == NodeKind::container            ? ZOO_CONTAINER
                                                            : ZOO_PERSISTENT;
  submit(shown, LibraryOperation::with_value(std::move(done)), [&](LibraryOperation* operation) {
    return zoo_acreate2(library_, path.c_str(), data.data(), static_cast<int>(data.size()), rights(), mode, on_created,
                        operation);
  });
}

void CHandle::get(const std::string& path, WatchId watch, Handler<Node> done) {
  submit(path, LibraryOperation::with_value(std::move(done)), [&](LibraryOperation* operation) {
    return zoo_awget(library_, path.c_str(), watcher_of(watch), context_of(watch), on_node, operation);
  });
}

void CHandle::exists(const std::string& path, WatchId watch, Handler<Stat> done) {
  submit(path, LibraryOperation::with_value(std::move(done)), [&](LibraryOperation* operation) {
    return zoo_awexists(library_, path.c_str(), watcher_of(watch), context_of(watch), on_stat, operation);
  });
}

void CHandle::children(const std::string& path, WatchId watch, Handler<std::vector<std::string>> done) {
  submit(path, LibraryOperation::with_value(std::move(done)), [&](LibraryOperation* operation) {
    return zoo_awget_children(library_, path.c_str(), watcher_of(watch), context_of(watch), on_strings, operation);
  });
}

void CHandle::set(const std::string& path, const std::string& data, DoneHandler done) {
  submit(path, LibraryOperation::without_value(std::move(done)), [&](LibraryOperation* operation) {
    return zoo_aset(library_, path.c_str(), data.data(), static_cast<int>(data.size()), -1, on_stat, operation);
  });
}

void CHandle::remove(const std::string& path, DoneHandler done) {
  submit(path, LibraryOperation::without_value(std::move(done)),
         [&](LibraryOperation* operation) { return zoo_adelete(library_, path.c_str(), -1, on_done, operation); });
}

// ZooKeeper has no such request, but creating a child of an ephemeral node fails, even within a transaction.
void CHandle::remove_childless(const std::string& path, DoneHandler done) {
  submit(path, LibraryOperation::without_value(std::move(done)), [&](LibraryOperation* operation) {
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
  submit(path, LibraryOperation::without_value(std::move(done)),
         [&](LibraryOperation* operation) { return zoo_async(library_, path.c_str(), on_string, operation); });
}

// --- What arrives ----------------------------------------------------------------------------------------------------

void CHandle::completed(std::uint64_t id) {
  const auto found = operations_.extract(id);
  if (!found) return;
  LibraryOperation& operation = *found.mapped();
  if (operation.answer) {
    const int code = listener_ == nullptr ? ZSESSIONEXPIRED : operation.code;
    operation.answer({.problem = problem_of(code), .failure = failure_of(code, operation.path), .sent = operation.sent},
                     operation);
  } else if (operations_.empty()) {
    close_in_background();  // all were failed before
  }
}

void CHandle::watch_fired(WatchId id) {
  if (listener_ != nullptr) listener_->watch_fired(id);
}

void CHandle::session_event(const SessionEvent& event) {
  if (library_ == nullptr) {
    early_ = event;
    return;
  }
  if (event.event == Event::disconnected && !connected_) return;  // the library reports each attempt
  connected_ = event.event == Event::connected && listener_ != nullptr;
  if (connected_) {
    session_ = event.session;
    timeout_ = event.timeout;
  }
  if (listener_ != nullptr) return listener_->session_event(event.event, event.why);
  if (drain_timer_.armed()) close_in_background();  // there is nothing to wait for
}

std::unique_ptr<Handle> make_c_handle(Executor& executor, const Options& options, Handle::Listener& listener) {
  return std::make_unique<CHandle>(executor, options, listener);
}

}  // namespace dlock::zookeeper
