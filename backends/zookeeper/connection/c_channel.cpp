#include "backends/zookeeper/connection/c_channel.hpp"

#include <utility>

namespace dlock::zookeeper {

namespace {

LibraryOperation& operation_of(const void* data) {
  return *static_cast<LibraryOperation*>(const_cast<void*>(data));
}

Stat stat_of(const ::Stat* stat) {
  if (stat == nullptr) return {};
  return {.created = stat->czxid, .owner = stat->ephemeralOwner, .children = stat->numChildren};
}

}  // namespace

// --- The mailbox -----------------------------------------------------------------------------------------------------

void LibraryChannel::put(const LibraryArrival& arrival) {
  const util::MutexLock lock(mutex_);
  if (executor_ == nullptr) return;
  if (arrival.kind == LibraryArrival::Kind::opened) {
    opened_ = true;
    arrivals_.insert(arrivals_.begin(), arrival);
  } else {
    arrivals_.push_back(arrival);
  }
  if (!opened_ || std::exchange(posted_, true)) return;
  executor_->post([self = shared_from_this()] { self->deliver(); });
}

void LibraryChannel::deliver() {
  std::vector<LibraryArrival> due;
  {
    const util::MutexLock lock(mutex_);
    posted_ = false;
    due.swap(arrivals_);
  }
  for (const LibraryArrival& arrival : due) {
    if (receiver_ == nullptr) return;
    receiver_->arrived(arrival);
  }
}

void LibraryChannel::post(Executor::Task task) {
  const util::MutexLock lock(mutex_);
  if (executor_ == nullptr) return;
  executor_->post([self = shared_from_this(), task = std::move(task)] {
    if (self->receiver_ != nullptr) task();
  });
}

bool LibraryChannel::hand_over(zhandle_t* library) {
  const util::MutexLock lock(mutex_);
  if (abandoned_) return false;
  library_ = library;
  return true;
}

zhandle_t* LibraryChannel::take_for_closing() {
  const util::MutexLock lock(mutex_);
  abandoned_ = true;
  return std::exchange(library_, nullptr);
}

zhandle_t* LibraryChannel::library() {
  const util::MutexLock lock(mutex_);
  return library_;
}

void LibraryChannel::leave() {
  receiver_ = nullptr;
  const util::MutexLock lock(mutex_);
  executor_ = nullptr;
}

void announce(LibraryOperation& operation, int code) {
  operation.code = code;
  operation.channel->put({.kind = LibraryArrival::Kind::completed, .id = operation.id});
}

// --- On the library's threads ----------------------------------------------------------------------------------------

void on_session_event(zhandle_t* library, int type, int state, const char* /*path*/, void* channel) {
  if (type != ZOO_SESSION_EVENT) return;
  LibraryArrival arrival{.kind = LibraryArrival::Kind::session, .event = Handle::Event::disconnected};
  if (state == ZOO_CONNECTED_STATE) {
    arrival.event = Handle::Event::connected;
    arrival.session = zoo_client_id(library)->client_id;
    arrival.timeout = std::chrono::milliseconds(zoo_recv_timeout(library));
  } else if (state == ZOO_EXPIRED_SESSION_STATE) {
    arrival.event = Handle::Event::expired;
  } else if (state == ZOO_AUTH_FAILED_STATE) {
    arrival.event = Handle::Event::auth_failed;
  }
  static_cast<LibraryChannel*>(channel)->put(arrival);
}

// Watches get events of the session, too, and are not used up by that.
void on_watch(zhandle_t* library, int type, int /*state*/, const char* /*path*/, void* id) {
  if (type == ZOO_SESSION_EVENT) return;
  auto* const channel = static_cast<LibraryChannel*>(const_cast<void*>(zoo_get_context(library)));
  channel->put({.kind = LibraryArrival::Kind::watch, .id = reinterpret_cast<std::uintptr_t>(id)});
}

void on_created(int code, const char* path, const ::Stat* stat, const void* data) {
  LibraryOperation& operation = operation_of(data);
  if (code == ZOK && path != nullptr) operation.text = path;
  if (code == ZOK) operation.stat = stat_of(stat);
  announce(operation, code);
}

void on_data(int code, const char* value, int size, const ::Stat* stat, const void* data) {
  LibraryOperation& operation = operation_of(data);
  if (code == ZOK && value != nullptr && size > 0) operation.text.assign(value, static_cast<std::size_t>(size));
  if (code == ZOK) operation.stat = stat_of(stat);
  announce(operation, code);
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

void on_stat(int code, const ::Stat* stat, const void* data) {
  LibraryOperation& operation = operation_of(data);
  if (code == ZOK) operation.stat = stat_of(stat);
  announce(operation, code);
}

void on_done(int code, const void* data) {
  announce(operation_of(data), code);
}

}  // namespace dlock::zookeeper
