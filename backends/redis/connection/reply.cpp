#include "backends/redis/connection/reply.hpp"

#include <hiredis/read.h>

#include <charconv>
#include <new>
#include <utility>

namespace dlock::redis {

// The reply that is being read, and what is left of the limits for it.
struct ReplyReader::Reading {
  Reply root;
  std::size_t bytes = 0;
  std::size_t elements = 0;
  bool exceeded = false;

  bool take(std::size_t& from, std::size_t amount) noexcept {
    if (amount > from) {
      exceeded = true;
      return false;
    }
    from -= amount;
    return true;
  }
  // The reply; the next one may begin.
  Reply finish(const ReplyLimits& limits) {
    bytes = limits.bytes;
    elements = limits.elements;
    return std::exchange(root, {});
  }
};

// hiredis builds the reply through these. Each returns the new object, or nullptr to refuse it; nothing may be thrown
// through the C code that calls them. Everything but the root is an element of its parent.
struct ReplyReader::Callbacks {
  static Reading& reading(const redisReadTask* task) { return *static_cast<Reading*>(task->privdata); }
  static Reply* place(const redisReadTask* task) {
    if (task->parent == nullptr) return &reading(task).root;
    auto* parent = static_cast<Reply*>(task->parent->obj);
    return &parent->elements[static_cast<std::size_t>(task->idx)];
  }

  static void* string(const redisReadTask* task, char* text, std::size_t length) {
    Reading& left = reading(task);
    if (!left.take(left.bytes, length)) return nullptr;
    Reply* reply = place(task);
    reply->type = task->type == REDIS_REPLY_STATUS  ? Reply::Type::status
                  : task->type == REDIS_REPLY_ERROR ? Reply::Type::error
                                                    : Reply::Type::string;
    return fill(reply, [&] { reply->text.assign(text, length); });
  }
  static void* array(const redisReadTask* task, int elements) {
    Reading& left = reading(task);
    if (elements < 0 || !left.take(left.elements, static_cast<std::size_t>(elements))) return nullptr;
    Reply* reply = place(task);
    reply->type = Reply::Type::array;
    return fill(reply, [&] { reply->elements.resize(static_cast<std::size_t>(elements)); });
  }
  static void* integer(const redisReadTask* task, long long value) {
    Reply* reply = place(task);
    reply->type = Reply::Type::integer;
    reply->integer = value;
    return reply;
  }
  static void* nil(const redisReadTask* task) { return place(task); }
  static void free(void* /*root*/) {}  // it is the reader's

  template <class F>
  static void* fill(Reply* reply, F&& f) noexcept {
    try {
      f();
      return reply;
    } catch (...) {  // out of memory
      return nullptr;
    }
  }
};

void ReplyReader::FreeReader::operator()(redisReader* reader) const noexcept {
  redisReaderFree(reader);
}

ReplyReader::ReplyReader(ReplyLimits limits) : limits_(limits), reading_(std::make_unique<Reading>()) {
  static redisReplyObjectFunctions functions = {Callbacks::string, Callbacks::array, Callbacks::integer, Callbacks::nil,
                                                Callbacks::free};
  reader_.reset(redisReaderCreateWithFunctions(&functions));
  if (!reader_) throw std::bad_alloc();
  reader_->privdata = reading_.get();
  (void)reading_->finish(limits_);
}

ReplyReader::~ReplyReader() = default;

void ReplyReader::feed(std::string_view bytes) {
  if (!problem_.empty() || bytes.empty()) return;
  if (redisReaderFeed(reader_.get(), bytes.data(), bytes.size()) != 0) problem_ = "out of memory";
}

std::optional<Reply> ReplyReader::next() {
  if (!problem_.empty()) return std::nullopt;
  void* root = nullptr;
  if (redisReaderGetReply(reader_.get(), &root) != 0) {
    problem_ = reading_->exceeded ? "the reply is larger than any that dlock expects" : reader_->errstr;
    return std::nullopt;
  }
  if (root == nullptr) {
    check_incomplete();
    return std::nullopt;
  }
  return reading_->finish(limits_);
}

// hiredis waits for any length that the server announces; this refuses what exceeds the limits.
void ReplyReader::check_incomplete() {
  const redisReader& reader = *reader_;
  const std::string_view rest(reader.buf + reader.pos, reader.len - reader.pos);
  if (reader.ridx < 0 || rest.empty()) return;
  const bool bulk = reader.rstack[reader.ridx].type == REDIS_REPLY_STRING;
  const std::size_t line_end = rest.find("\r\n");
  if (line_end == std::string_view::npos || !bulk) {
    if (line_end == std::string_view::npos && rest.size() > limits_.line) problem_ = "a line that does not end";
    return;
  }
  std::uint64_t announced = 0;
  const auto parsed = std::from_chars(rest.data(), rest.data() + line_end, announced);
  // hiredis itself refuses anything but digits, when it parses the item again.
  if (parsed.ec == std::errc::result_out_of_range || announced > reading_->bytes) {
    problem_ = "the reply is larger than any that dlock expects";
  }
}

}  // namespace dlock::redis
