// Calls of gRPC over one HTTP/2 connection, the client's side: bytes from the network go in, bytes for it come out.
// https://github.com/grpc/grpc/blob/master/doc/PROTOCOL-HTTP2.md, over nghttp2. No I/O.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

struct nghttp2_session;

namespace dlock::etcd {

// How a call ended.
struct GrpcStatus {
  // Those of gRPC's numbers that are distinguished.
  enum Code {
    ok = 0,
    canceled = 1,
    unknown = 2,
    invalid_argument = 3,
    deadline_exceeded = 4,
    permission_denied = 7,
    resource_exhausted = 8,
    aborted = 10,
    out_of_range = 11,
    unimplemented = 12,
    internal = 13,
    unavailable = 14,
    unauthenticated = 16,
  };

  int code = ok;
  std::string message = {};      // for people
  bool not_carried_out = false;  // the server says that it never looked at it
};

class Grpc {
 public:
  using CallId = std::int32_t;                                        // never 0
  using Metadata = std::vector<std::pair<std::string, std::string>>;  // names in small letters
  // What arrived: a message of a call, or, without one, its end.
  struct Event {
    CallId call = 0;
    std::optional<std::string> message = std::nullopt;
    GrpcStatus status = {};
  };

  // A message or header of the other side's that is longer breaks the connection.
  static constexpr std::size_t longest_message = std::size_t{8} << 20;
  static constexpr std::size_t longest_headers = std::size_t{64} << 10;

  // authority: the host and port, as HTTP has it. secure: whether the scheme is https.
  Grpc(std::string authority, bool secure);
  ~Grpc();
  Grpc(const Grpc&) = delete;
  Grpc& operator=(const Grpc&) = delete;

  // Begins a call: "/etcdserverpb.KV/Txn". 0: this connection takes no more (it is closing, or all numbers are used).
  [[nodiscard]] CallId begin(std::string_view path, const Metadata& metadata);
  // A message of ours; last: none will follow. A call that has ended is ignored.
  void send(CallId id, std::string_view message, bool last);
  // It is not wanted any more: the server is told, and no event of it follows.
  void cancel(CallId id);
  // Calls that have not ended.
  [[nodiscard]] std::size_t under_way() const noexcept { return calls_.size(); }
  // The server has sent its settings.
  [[nodiscard]] bool greeted() const noexcept { return greeted_; }
  // How many calls the server allows at a time: its SETTINGS_MAX_CONCURRENT_STREAMS. Further ones wait here, in order.
  [[nodiscard]] std::size_t most_calls() const noexcept;
  // No call can be begun any more.
  [[nodiscard]] bool closing() const noexcept { return closing_; }

  // Takes what has arrived. False: the other side does not speak as it should, and problem() says how; of no further
  // use then. What arrived before can still be read.
  [[nodiscard]] bool receive(std::string_view bytes);
  [[nodiscard]] const std::string& problem() const noexcept { return problem_; }
  // The oldest of what has arrived; nullopt: nothing more.
  [[nodiscard]] std::optional<Event> next();
  // Appends what is to be sent.
  void take_output(std::string& out);

 private:
  struct Call;
  struct Callbacks;
  struct CloseSession {
    void operator()(nghttp2_session* session) const noexcept;
  };

  bool fail(std::string why);  // false
  void write(std::string& out);
  void refuse_above(CallId last);
  [[nodiscard]] bool take_messages(CallId id, Call& call);
  void end(CallId id, GrpcStatus status);
  void forget(CallId id);

  const std::string authority_;
  const bool secure_;
  std::unique_ptr<nghttp2_session, CloseSession> session_;
  std::unordered_map<CallId, std::unique_ptr<Call>> calls_;
  std::deque<Event> events_;
  std::string problem_;
  std::string output_;     // what was taken from nghttp2 before anyone asked
  std::size_t heard_ = 0;  // how much of HTTP/1's beginning; npos: of something else
  bool greeted_ = false;
  bool closing_ = false;
};

}  // namespace dlock::etcd
