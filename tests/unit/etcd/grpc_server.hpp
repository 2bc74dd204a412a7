// The server's side of gRPC over HTTP/2 for tests, without I/O: what a client sends is recorded, and the test says what
// is answered, also what no server should. Below it the fixture of a client and this server.
//
//   server.receive(bytes of the client);
//   server.answer(1, "message");              // headers, one message, status 0
//   client.receive(server.output());
#pragma once

#include <gtest/gtest.h>
#include <nghttp2/nghttp2.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "backends/etcd/wire/grpc.hpp"

namespace dlock::etcd::test {

// A message with what gRPC has in front of it.
[[nodiscard]] inline std::string framed(std::string_view message) {
  const std::size_t size = message.size();
  std::string out(1, '\0');
  for (const unsigned shift : {24U, 16U, 8U, 0U}) out += static_cast<char>(size >> shift & 0xffU);
  return out.append(message);
}

class GrpcServer {
 public:
  using Id = std::int32_t;
  using Headers = std::vector<std::pair<std::string, std::string>>;
  using Settings = std::vector<nghttp2_settings_entry>;

  struct Call {
    std::map<std::string, std::string> headers = {};
    std::vector<std::string> messages = {};
    bool ended = false;            // the client will send nothing more
    bool was_reset = false;        // by the client
    std::uint32_t reset_code = 0;  // HTTP/2's number

    std::string in = {};  // a message that has not come whole
    std::string out = {};
    bool no_more = false;
    Headers trailers = {};  // empty: none
  };

  explicit GrpcServer(const Settings& settings = {}) {
    nghttp2_session_callbacks* callbacks = nullptr;
    must(nghttp2_session_callbacks_new(&callbacks));
    nghttp2_session_callbacks_set_on_header_callback(callbacks, &on_header);
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, &on_data);
    nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, &on_frame);
    nghttp2_session* session = nullptr;
    const int made = nghttp2_session_server_new(&session, callbacks, this);
    nghttp2_session_callbacks_del(callbacks);
    session_.reset(session);
    must(made);
    must(nghttp2_submit_settings(session, NGHTTP2_FLAG_NONE, settings.data(), settings.size()));
  }
  GrpcServer(const GrpcServer&) = delete;
  GrpcServer& operator=(const GrpcServer&) = delete;

  // --- What the client sends -----------------------------------------------------------------------------------------

  void receive(std::string_view bytes) {
    const auto* const data = reinterpret_cast<const std::uint8_t*>(bytes.data());
    must(static_cast<int>(std::min<ssize_t>(0, nghttp2_session_mem_recv(session_.get(), data, bytes.size()))));
  }
  // The numbers of calls are 1, 3, 5, ...
  [[nodiscard]] const Call& call(Id id) const { return calls_.at(id); }
  [[nodiscard]] std::size_t calls() const noexcept { return calls_.size(); }
  [[nodiscard]] bool was_left() const noexcept { return was_left_; }  // by a GOAWAY

  // --- Answers -------------------------------------------------------------------------------------------------------

  // Headers of an answer; what follows is sent behind them.
  void respond(Id id, const Headers& headers = usual()) {
    std::vector<nghttp2_nv> list = as_nghttp2(headers);
    const nghttp2_data_provider provider{.source = {}, .read_callback = &read};
    must(nghttp2_submit_response(session_.get(), id, list.data(), list.size(), &provider));
  }
  void send(Id id, std::string_view message) { send_bytes(id, framed(message)); }
  void send_bytes(Id id, std::string_view bytes) {
    calls_.at(id).out += bytes;
    (void)nghttp2_session_resume_data(session_.get(), id);  // if it waited
  }
  void finish(Id id, const std::string& status = "0") { finish_with(id, {{"grpc-status", status}}); }
  // Without trailers: END_STREAM with the last of the data.
  void finish_with(Id id, Headers trailers) {
    Call& call = calls_.at(id);
    call.trailers = std::move(trailers);
    call.no_more = true;
    (void)nghttp2_session_resume_data(session_.get(), id);
  }
  void answer(Id id, std::string_view message) {
    respond(id);
    send(id, message);
    finish(id);
  }
  // By headers alone.
  void refuse(Id id, const std::string& status, const std::string& message) {
    Headers headers = usual();
    headers.insert(headers.end(), {{"grpc-status", status}, {"grpc-message", message}});
    std::vector<nghttp2_nv> list = as_nghttp2(headers);
    must(nghttp2_submit_response(session_.get(), id, list.data(), list.size(), nullptr));
  }
  void reset(Id id, std::uint32_t code) {
    must(nghttp2_submit_rst_stream(session_.get(), NGHTTP2_FLAG_NONE, id, code));
  }
  void go_away(Id last) {
    must(nghttp2_submit_goaway(session_.get(), NGHTTP2_FLAG_NONE, last, NGHTTP2_NO_ERROR, nullptr, 0));
  }

  [[nodiscard]] std::string output() {
    std::string out;
    for (;;) {
      const std::uint8_t* data = nullptr;
      const ssize_t size = nghttp2_session_mem_send(session_.get(), &data);
      must(static_cast<int>(std::min<ssize_t>(0, size)));
      if (size <= 0) return out;
      out.append(reinterpret_cast<const char*>(data), static_cast<std::size_t>(size));
    }
  }

  [[nodiscard]] static Headers usual() { return {{":status", "200"}, {"content-type", "application/grpc"}}; }

 private:
  struct CloseSession {
    void operator()(nghttp2_session* session) const noexcept { nghttp2_session_del(session); }
  };

  static void must(int result) {
    if (result != 0) throw std::runtime_error(std::string("nghttp2: ") + nghttp2_strerror(result));
  }
  static GrpcServer& self_of(void* self) noexcept { return *static_cast<GrpcServer*>(self); }
  static std::string text(const std::uint8_t* data, std::size_t size) {
    return {reinterpret_cast<const char*>(data), size};
  }
  static std::vector<nghttp2_nv> as_nghttp2(const Headers& headers) {
    const auto bytes = [](const std::string& text) {
      return reinterpret_cast<std::uint8_t*>(const_cast<char*>(text.data()));  // which are copied
    };
    std::vector<nghttp2_nv> list;
    for (const auto& [name, value] : headers) {
      list.push_back({.name = bytes(name),
                      .value = bytes(value),
                      .namelen = name.size(),
                      .valuelen = value.size(),
                      .flags = NGHTTP2_NV_FLAG_NONE});
    }
    return list;
  }

  static int on_header(nghttp2_session* /*session*/, const nghttp2_frame* frame, const std::uint8_t* name,
                       std::size_t name_size, const std::uint8_t* value, std::size_t value_size, std::uint8_t /*flags*/,
                       void* self) {
    self_of(self).calls_[frame->hd.stream_id].headers[text(name, name_size)] = text(value, value_size);
    return 0;
  }
  static int on_data(nghttp2_session* /*session*/, std::uint8_t /*flags*/, Id id, const std::uint8_t* data,
                     std::size_t size, void* self) {
    constexpr std::size_t prefix_size = 5;
    Call& call = self_of(self).calls_.at(id);
    call.in.append(text(data, size));
    while (call.in.size() >= prefix_size) {
      std::size_t length = 0;
      for (std::size_t i = 1; i < prefix_size; ++i) length = length << 8 | static_cast<unsigned char>(call.in[i]);
      if (call.in.size() - prefix_size < length) break;
      call.messages.push_back(call.in.substr(prefix_size, length));
      call.in.erase(0, prefix_size + length);
    }
    return 0;
  }
  static int on_frame(nghttp2_session* /*session*/, const nghttp2_frame* frame, void* self) {
    GrpcServer& server = self_of(self);
    if (frame->hd.type == NGHTTP2_GOAWAY) server.was_left_ = true;
    const auto found = server.calls_.find(frame->hd.stream_id);
    if (found == server.calls_.end()) return 0;
    const bool carries = frame->hd.type == NGHTTP2_HEADERS || frame->hd.type == NGHTTP2_DATA;
    if (carries && (frame->hd.flags & NGHTTP2_FLAG_END_STREAM) != 0) found->second.ended = true;
    if (frame->hd.type == NGHTTP2_RST_STREAM) {
      found->second.was_reset = true;
      found->second.reset_code = frame->rst_stream.error_code;
    }
    return 0;
  }
  static ssize_t read(nghttp2_session* session, Id id, std::uint8_t* out, std::size_t size, std::uint32_t* flags,
                      nghttp2_data_source* /*source*/, void* self) {
    Call& call = self_of(self).calls_.at(id);
    const std::size_t count = std::min(size, call.out.size());
    std::memcpy(out, call.out.data(), count);
    call.out.erase(0, count);
    if (call.out.empty() && call.no_more) {
      *flags |= NGHTTP2_DATA_FLAG_EOF;
      if (!call.trailers.empty()) {
        *flags |= NGHTTP2_DATA_FLAG_NO_END_STREAM;
        std::vector<nghttp2_nv> list = as_nghttp2(call.trailers);
        must(nghttp2_submit_trailer(session, id, list.data(), list.size()));
      }
      return static_cast<ssize_t>(count);
    }
    return count == 0 ? static_cast<ssize_t>(NGHTTP2_ERR_DEFERRED) : static_cast<ssize_t>(count);
  }

  std::unique_ptr<nghttp2_session, CloseSession> session_;
  std::map<Id, Call> calls_;
  bool was_left_ = false;
};

}  // namespace dlock::etcd::test

namespace dlock::etcd {

inline constexpr std::string_view some_method = "/etcdserverpb.KV/Txn";

inline std::string frame_of(std::uint8_t type, std::uint8_t flags, std::uint32_t stream, std::string_view payload) {
  std::string frame;
  for (const unsigned shift : {16U, 8U, 0U}) frame += static_cast<char>(payload.size() >> shift & 0xffU);
  frame += static_cast<char>(type);
  frame += static_cast<char>(flags);
  for (const unsigned shift : {24U, 16U, 8U, 0U}) frame += static_cast<char>(stream >> shift & 0xffU);
  return frame.append(payload);
}

// HPACK: a field that is not indexed.
inline std::string header_field(const std::string& name, const std::string& value) {
  std::string out = std::string(1, '\0') + static_cast<char>(name.size()) + name;
  std::size_t size = value.size();
  if (size < 127) return out + static_cast<char>(size) + value;
  out += '\x7f';
  for (size -= 127; size > 127; size >>= 7U) out += static_cast<char>(0x80U | (size & 0x7fU));
  return out + static_cast<char>(size) + value;
}
inline std::string headers_frame(const std::string& block) {
  constexpr std::size_t most = 16000;
  std::string out;
  for (std::size_t at = 0; at < block.size(); at += most) {
    const bool last = block.size() - at <= most;
    out += frame_of(at == 0 ? NGHTTP2_HEADERS : NGHTTP2_CONTINUATION, last ? NGHTTP2_FLAG_END_HEADERS : 0, 1,
                    block.substr(at, most));
  }
  return out;
}
// ":status: 200" and "content-type: application/grpc".
inline const std::string usual_headers = "\x88\x0f\x10\x10" + std::string("application/grpc");

// "message" or "=status", in the order of the events.
using Said = std::vector<std::string>;

class GrpcTest : public testing::Test {
 protected:
  // Until neither side has anything to send. False: the client says that it cannot go on.
  bool exchange() {
    for (;;) {
      const std::string to_server = output();
      server_.receive(to_server);
      const std::string to_client = server_.output();
      if (!to_client.empty() && !grpc_.receive(to_client)) return false;
      if (to_server.empty() && to_client.empty()) return grpc_.problem().empty();
    }
  }
  std::string output() {
    std::string out;
    grpc_.take_output(out);
    return out;
  }
  Grpc::CallId begin_call(std::string_view request = "request", bool last = true) {
    const Grpc::CallId id = grpc_.begin(some_method, {});
    grpc_.send(id, request, last);
    return id;
  }
  // A call that has reached the server.
  Grpc::CallId make_call(std::string_view request = "request", bool last = true) {
    const Grpc::CallId id = begin_call(request, last);
    EXPECT_TRUE(exchange());
    return id;
  }
  Said said_of(Grpc::CallId id) {
    collect();
    Said said;
    for (const auto& event : events_) {
      if (event.call == id) said.push_back(event.message ? *event.message : "=" + std::to_string(event.status.code));
    }
    return said;
  }
  // The same, once both sides have nothing to send.
  Said heard_of(Grpc::CallId id) {
    EXPECT_TRUE(exchange());
    return said_of(id);
  }
  // How the call ended; it must have.
  GrpcStatus end_of(Grpc::CallId id) {
    collect();
    for (const auto& event : events_) {
      if (event.call == id && !event.message) return event.status;
    }
    ADD_FAILURE() << "call " << id << " has not ended";
    return {};
  }
  void collect() {
    while (auto event = grpc_.next()) events_.push_back(*std::move(event));
  }

  Grpc grpc_{"h1:2379", false};
  test::GrpcServer server_;
  std::vector<Grpc::Event> events_;
};

}  // namespace dlock::etcd
