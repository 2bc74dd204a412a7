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
  // The codes of gRPC that dlock distinguishes.
  enum Code {
    ok = 0,
    unknown = 2,
    invalid_argument = 3,
    permission_denied = 7,
    resource_exhausted = 8,
    out_of_range = 11,
    unimplemented = 12,
    internal = 13,
    unavailable = 14,
    unauthenticated = 16,
  };

  int code = ok;
  std::string message = {};      // for people
  bool not_carried_out = false;  // the server declares that it did not begin the call
};

class Grpc {
 public:
  using CallId = std::int32_t;                                        // never 0
  using Metadata = std::vector<std::pair<std::string, std::string>>;  // names in small letters
  // A message of a call, or the end of a call if there is no message.
  struct Event {
    CallId call = 0;
    std::optional<std::string> message = std::nullopt;
    GrpcStatus status = {};
  };

  // If the server sends a longer message or longer headers, the connection is broken.
  static constexpr std::size_t longest_message = std::size_t{8} << 20;
  static constexpr std::size_t longest_headers = std::size_t{64} << 10;

  // authority: the host and port, in HTTP's form. secure: whether the scheme is https.
  Grpc(std::string authority, bool secure);
  ~Grpc();
  Grpc(const Grpc&) = delete;
  Grpc& operator=(const Grpc&) = delete;

  // Begins a call of a method ("/etcdserverpb.KV/Txn"). 0: the connection accepts no more calls, because it is closing
  // or has used up its numbers.
  [[nodiscard]] CallId begin(std::string_view path, const Metadata& metadata);
  // Queues a message; last: no more messages follow. Ignored if the call has ended.
  void send(CallId id, std::string_view message, bool last);
  // Tells the server to stop. No event of the call follows.
  void cancel(CallId id);
  // The number of calls that have not ended.
  [[nodiscard]] std::size_t under_way() const noexcept { return calls_.size(); }
  // The server has sent its settings.
  [[nodiscard]] bool greeted() const noexcept { return greeted_; }
  // How many concurrent calls the server allows: its SETTINGS_MAX_CONCURRENT_STREAMS. Further ones wait here, in order.
  [[nodiscard]] std::size_t most_calls() const noexcept;
  // The connection accepts no more calls.
  [[nodiscard]] bool closing() const noexcept { return closing_; }

  // Reads bytes from the network. False: the server breaks the protocol, and problem() has the reason. Then only events
  // that arrived earlier can be read.
  [[nodiscard]] bool receive(std::string_view bytes);
  [[nodiscard]] const std::string& problem() const noexcept { return problem_; }
  // The oldest event; nullopt: there is none.
  [[nodiscard]] std::optional<Event> next();
  // Appends the bytes for the network.
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
  std::string output_;      // nghttp2's last words, until take_output()
  std::size_t http_1_ = 0;  // how many bytes of HTTP/1's greeting the server sent; npos: it sent something else
  bool greeted_ = false;
  bool closing_ = false;
};

}  // namespace dlock::etcd
