// Between the client library's threads and our tasks: requests that the library has pointers to, its callbacks, and the
// mailbox into which these put what has arrived.
#pragma once

#include <zookeeper/zookeeper.h>

#include <array>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <dlock/spi/executor.hpp>

#include "backends/zookeeper/connection/handle.hpp"
#include "util/mutex.hpp"

namespace dlock::zookeeper {

class LibraryChannel;

// What a thread of the library, or one of ours, has to tell.
struct LibraryArrival {
  enum class Kind { opened, completed, watch, session } kind;
  std::uint64_t id = 0;  // of the operation or watch
  Handle::Event event = Handle::Event::failed;
  int error = 0;  // opened: errno
  std::int64_t session = 0;
  std::chrono::milliseconds timeout{};
};

// A request under way. The library has a pointer to it until it was completed or the handle is closed.
struct LibraryOperation {
  using Answer = std::function<void(const Outcome&, LibraryOperation&)>;

  LibraryChannel* channel = nullptr;
  std::uint64_t id = 0;
  std::string path = {};
  TimePoint sent = {};
  Answer answer = nullptr;  // in tasks only

  // What came back. Written before the arrival is announced, read after it.
  int code = ZOK;
  std::string text = {};
  zookeeper::Stat stat = {};
  std::vector<std::string> names = {};
  std::array<zoo_op_result_t, 3> results = {};  // of a transaction
};

// Lives until the library is closed.
class LibraryChannel final : public std::enable_shared_from_this<LibraryChannel> {
 public:
  class Receiver {
   public:
    Receiver() = default;
    Receiver(const Receiver&) = delete;
    Receiver& operator=(const Receiver&) = delete;
    // In tasks.
    virtual void arrived(const LibraryArrival& arrival) = 0;

   protected:
    ~Receiver() = default;
  };

  LibraryChannel(Executor& executor, Receiver& receiver) : receiver_(&receiver), executor_(&executor) {}

  // Any thread. Delivered in the order of the calls, but nothing before `opened`.
  void put(const LibraryArrival& arrival);
  // Runs the task unless the receiver is gone. Any thread.
  void post(Executor::Task task);

  // The thread that opens hands the library over. False: it is not wanted any more.
  [[nodiscard]] bool hand_over(zhandle_t* library);
  // nullptr: it was not opened, or is not yet; then the opening thread will find that it is not wanted.
  [[nodiscard]] zhandle_t* take_for_closing();
  [[nodiscard]] zhandle_t* library();

  // The receiver and the executor are no longer there. In tasks only.
  void leave();

 private:
  void deliver();

  Receiver* receiver_;  // in tasks only; nullptr: gone
  util::Mutex mutex_;
  Executor* executor_ DLOCK_GUARDED_BY(mutex_);  // nullptr: gone
  std::vector<LibraryArrival> arrivals_ DLOCK_GUARDED_BY(mutex_);
  bool posted_ DLOCK_GUARDED_BY(mutex_) = false;
  bool opened_ DLOCK_GUARDED_BY(mutex_) = false;
  bool abandoned_ DLOCK_GUARDED_BY(mutex_) = false;
  zhandle_t* library_ DLOCK_GUARDED_BY(mutex_) = nullptr;
};

// Says that this is all that came back, or will.
void announce(LibraryOperation& operation, int code);

// For the library. The channel is the context of the handle; the data of a request is its operation; the context of a
// watch is its id, never followed.
void on_session_event(zhandle_t* library, int type, int state, const char* path, void* channel);
void on_watch(zhandle_t* library, int type, int state, const char* path, void* id);
void on_created(int code, const char* path, const ::Stat* stat, const void* data);
void on_data(int code, const char* value, int size, const ::Stat* stat, const void* data);
void on_strings(int code, const String_vector* strings, const void* data);
void on_string(int code, const char* value, const void* data);
void on_stat(int code, const ::Stat* stat, const void* data);
void on_done(int code, const void* data);

}  // namespace dlock::zookeeper
