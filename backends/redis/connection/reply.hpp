// The replies of a Redis server, parsed within bounds. Any thread; no I/O.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

struct redisReader;

namespace dlock::redis {

struct Reply {
  enum class Type { nil, status, error, integer, string, array };

  Type type = Type::nil;
  std::int64_t integer = 0;
  std::string text = {};  // of a status, error or string
  std::vector<Reply> elements = {};

  [[nodiscard]] bool is(Type t) const noexcept { return type == t; }
};

// The largest reply accepted: ten times what Redis sends to dlock. A larger one comes from something else.
struct ReplyLimits {
  std::size_t bytes = std::size_t{4} << 20U;  // of one reply
  std::size_t elements = 65536;               // of one reply, at all depths together
  std::size_t line = std::size_t{64} << 10U;  // of a status, an error, a number or the head of an array
};

// Parses the bytes of a connection. After a problem, the connection must be closed, because bytes and replies can no
// longer be matched.
class ReplyReader {
 public:
  explicit ReplyReader(ReplyLimits limits = {});
  ~ReplyReader();
  ReplyReader(const ReplyReader&) = delete;
  ReplyReader& operator=(const ReplyReader&) = delete;

  // Takes bytes as they came. At most a few KiB at a time keeps the memory bound tight.
  void feed(std::string_view bytes);
  // The next complete reply; nullopt: more bytes are needed, or there is a problem.
  [[nodiscard]] std::optional<Reply> next();
  // Why these bytes are not Redis's protocol; empty: no problem.
  [[nodiscard]] const std::string& problem() const noexcept { return problem_; }

 private:
  struct Reading;
  struct Callbacks;
  struct FreeReader {
    void operator()(redisReader* reader) const noexcept;
  };

  void check_incomplete();

  const ReplyLimits limits_;
  std::unique_ptr<Reading> reading_;
  std::unique_ptr<redisReader, FreeReader> reader_;
  std::string problem_;
};

}  // namespace dlock::redis
