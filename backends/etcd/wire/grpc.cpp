#include "backends/etcd/wire/grpc.hpp"

#include <nghttp2/nghttp2.h>

#include <algorithm>
#include <array>
#include <new>

#include "backends/common/send_buffer.hpp"
#include "util/number.hpp"
#include "util/percent.hpp"

namespace dlock::etcd {

namespace {

// With HTTP/2's default window of 64 KiB, the server would pause several times within a list of many locks.
constexpr std::int32_t window = 1 << 20;

// In front of each message: a byte that says whether it is compressed, and four bytes with its length.
constexpr std::size_t prefix_size = 5;

constexpr std::string_view http_1_greeting = "HTTP/1.";

// nghttp2 copies both, and does not write to them.
nghttp2_nv header(std::string_view name, std::string_view value) {
  const auto bytes = [](std::string_view text) {
    return reinterpret_cast<std::uint8_t*>(const_cast<char*>(text.data()));
  };
  return {bytes(name), bytes(value), name.size(), value.size(), NGHTTP2_NV_FLAG_NONE};
}

std::string_view text(const std::uint8_t* data, std::size_t size) {
  return {reinterpret_cast<const char*>(data), size};
}

// Throws if nghttp2 ran out of memory.
ssize_t checked(ssize_t result) {
  if (result == NGHTTP2_ERR_NOMEM) throw std::bad_alloc();
  return result;
}

std::optional<int> number_in(std::string_view digits) {
  const auto value = util::parse_number<int>(digits);
  return value >= 0 ? value : std::nullopt;
}

std::size_t length_in(std::string_view prefix) {
  std::size_t length = 0;
  for (const char c : prefix.substr(1, prefix_size - 1)) length = length << 8 | static_cast<unsigned char>(c);
  return length;
}

void append_prefix(std::string& out, std::size_t length) {
  out += '\0';
  for (int shift = 24; shift >= 0; shift -= 8) out += static_cast<char>(length >> static_cast<unsigned>(shift) & 0xffU);
}

}  // namespace

struct Grpc::Call {
  common::SendBuffer out = {};  // for the network
  bool last = false;            // no more messages follow

  std::size_t header_bytes = 0;
  int http_status = 0;
  bool is_grpc = false;
  std::optional<int> status = std::nullopt;
  std::string message = {};
  std::string in = {};  // the beginning of a message

  // Headers arrived that are more than an interim answer.
  [[nodiscard]] bool is_answered() const { return http_status >= 200; }
  [[nodiscard]] bool is_well_answered() const { return http_status == 200 && is_grpc; }
  [[nodiscard]] GrpcStatus end() const;
};

GrpcStatus Grpc::Call::end() const {
  if (http_status != 200) {
    const bool for_now = http_status == 429 || (http_status >= 502 && http_status <= 504);
    return {.code = for_now ? GrpcStatus::unavailable : GrpcStatus::unknown,
            .message = "HTTP status " + std::to_string(http_status) + " instead of an answer"};
  }
  if (!is_grpc) return {.code = GrpcStatus::unknown, .message = "the answer is not gRPC"};
  if (!status) return {.code = GrpcStatus::unknown, .message = "a call ended without a status"};
  if (*status == 0 && !in.empty())
    return {.code = GrpcStatus::internal, .message = "a call ended in the middle of a message"};
  return {.code = *status, .message = util::percent_decode(message).value_or(message)};
}

// nghttp2 calls these. If memory runs out, the process ends, as it does in all tasks.
struct Grpc::Callbacks {
  static constexpr int broken = NGHTTP2_ERR_CALLBACK_FAILURE;

  static Grpc& grpc(void* self) noexcept { return *static_cast<Grpc*>(self); }
  static Call* call_of(nghttp2_session* session, std::int32_t stream) noexcept {
    return static_cast<Call*>(nghttp2_session_get_stream_user_data(session, stream));
  }

  static int on_header(nghttp2_session* session, const nghttp2_frame* frame, const std::uint8_t* name,
                       std::size_t name_size, const std::uint8_t* value, std::size_t value_size, std::uint8_t /*flags*/,
                       void* self) noexcept {
    Call* const call = call_of(session, frame->hd.stream_id);
    if (call == nullptr || frame->hd.type != NGHTTP2_HEADERS) return 0;  // headers of a push name a call, too
    call->header_bytes += name_size + value_size;
    if (call->header_bytes > longest_headers) {
      (void)grpc(self).fail("the server sent headers of more than " + std::to_string(longest_headers) + " bytes");
      return broken;
    }
    const std::string_view key = text(name, name_size);
    const std::string_view content = text(value, value_size);
    if (key == ":status") call->http_status = number_in(content).value_or(0);
    if (key == "content-type" && content.starts_with("application/grpc")) call->is_grpc = true;
    if (key == "grpc-status") call->status = number_in(content).value_or(GrpcStatus::unknown);
    if (key == "grpc-message") call->message = content;
    return 0;
  }

  static int on_data(nghttp2_session* session, std::uint8_t /*flags*/, std::int32_t stream, const std::uint8_t* data,
                     std::size_t size, void* self) noexcept {
    Call* const call = call_of(session, stream);
    if (call == nullptr || !call->is_well_answered()) return 0;
    call->in += text(data, size);
    return grpc(self).take_messages(stream, *call) ? 0 : broken;
  }

  static int on_frame(nghttp2_session* session, const nghttp2_frame* frame, void* self) noexcept {
    const std::int32_t stream = frame->hd.stream_id;
    if (frame->hd.type == NGHTTP2_GOAWAY) grpc(self).refuse_above(frame->goaway.last_stream_id);
    if (frame->hd.type == NGHTTP2_SETTINGS && (frame->hd.flags & NGHTTP2_FLAG_ACK) == 0) grpc(self).greeted_ = true;
    if (frame->hd.type != NGHTTP2_HEADERS && frame->hd.type != NGHTTP2_DATA) return 0;
    const Call* const call = call_of(session, stream);
    if (call == nullptr) return 0;
    const bool ended = (frame->hd.flags & NGHTTP2_FLAG_END_STREAM) != 0;
    // If a proxy answers with a page, the client does not wait for its end.
    if (!ended && (!call->is_answered() || call->is_well_answered())) return 0;
    const bool open = !ended || !call->last || call->out.size() != 0;
    grpc(self).end(stream, call->end());
    if (open) (void)nghttp2_submit_rst_stream(session, NGHTTP2_FLAG_NONE, stream, NGHTTP2_CANCEL);
    return 0;
  }

  static int on_close(nghttp2_session* session, std::int32_t stream, std::uint32_t error, void* self) noexcept {
    if (call_of(session, stream) == nullptr) return 0;  // it has ended already
    grpc(self).end(stream, {.code = GrpcStatus::unavailable,
                            .message = std::string("a call was aborted: ") + nghttp2_http2_strerror(error),
                            .not_carried_out = error == NGHTTP2_REFUSED_STREAM});
    return 0;
  }

  // nghttp2 tells the server that it broke the protocol.
  static int on_sent(nghttp2_session* /*session*/, const nghttp2_frame* frame, void* self) noexcept {
    if (frame->hd.type != NGHTTP2_GOAWAY || frame->goaway.error_code == NGHTTP2_NO_ERROR) return 0;
    std::string why = std::string("HTTP/2: ") + nghttp2_http2_strerror(frame->goaway.error_code);
    if (frame->goaway.opaque_data_len != 0) {
      (why += ": ") += text(frame->goaway.opaque_data, frame->goaway.opaque_data_len);
    }
    (void)grpc(self).fail(std::move(why));
    return 0;
  }

  static ssize_t read(nghttp2_session* session, std::int32_t stream, std::uint8_t* out, std::size_t size,
                      std::uint32_t* flags, nghttp2_data_source* /*source*/, void* /*self*/) noexcept {
    Call* const call = call_of(session, stream);
    if (call == nullptr) {
      *flags |= NGHTTP2_DATA_FLAG_EOF;
      return 0;
    }
    const std::size_t count = call->out.bytes().copy(reinterpret_cast<char*>(out), size);
    call->out.remove(count);
    if (call->out.size() == 0 && call->last) *flags |= NGHTTP2_DATA_FLAG_EOF;
    return count == 0 && !call->last ? static_cast<ssize_t>(NGHTTP2_ERR_DEFERRED) : static_cast<ssize_t>(count);
  }
};

void Grpc::CloseSession::operator()(nghttp2_session* session) const noexcept {
  nghttp2_session_del(session);
}

// None of these calls of nghttp2 fails, unless memory runs out.
Grpc::Grpc(std::string authority, bool secure) : authority_(std::move(authority)), secure_(secure) {
  nghttp2_session_callbacks* callbacks = nullptr;
  (void)checked(nghttp2_session_callbacks_new(&callbacks));
  nghttp2_session_callbacks_set_on_header_callback(callbacks, &Callbacks::on_header);
  nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, &Callbacks::on_data);
  nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, &Callbacks::on_frame);
  nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, &Callbacks::on_close);
  nghttp2_session_callbacks_set_on_frame_send_callback(callbacks, &Callbacks::on_sent);
  nghttp2_session* session = nullptr;
  (void)checked(nghttp2_session_client_new(&session, callbacks, this));
  nghttp2_session_callbacks_del(callbacks);
  session_.reset(session);
  constexpr std::array<nghttp2_settings_entry, 3> settings = {{
      {NGHTTP2_SETTINGS_ENABLE_PUSH, 0},
      {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, window},
      {NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE, longest_headers},
  }};
  (void)checked(nghttp2_submit_settings(session, NGHTTP2_FLAG_NONE, settings.data(), settings.size()));
  (void)checked(nghttp2_session_set_local_window_size(session, NGHTTP2_FLAG_NONE, 0, window));
}

Grpc::~Grpc() = default;

bool Grpc::fail(std::string why) {
  if (problem_.empty()) problem_ = std::move(why);
  return false;
}

// --- To the server ---------------------------------------------------------------------------------------------------

std::size_t Grpc::most_calls() const noexcept {
  return nghttp2_session_get_remote_settings(session_.get(), NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS);
}

Grpc::CallId Grpc::begin(std::string_view path, const Metadata& metadata) {
  if (closing_ || !problem_.empty()) return 0;
  std::vector<nghttp2_nv> headers = {
      header(":method", "POST"), header(":scheme", secure_ ? "https" : "http"),
      header(":path", path),     header(":authority", authority_),
      header("te", "trailers"),  header("content-type", "application/grpc"),
  };
  for (const auto& [name, value] : metadata) headers.push_back(header(name, value));
  auto call = std::make_unique<Call>();
  const nghttp2_data_provider provider{.source = {}, .read_callback = &Callbacks::read};
  const ssize_t id =
      checked(nghttp2_submit_request(session_.get(), nullptr, headers.data(), headers.size(), &provider, call.get()));
  if (id < 0) {  // all numbers are used
    closing_ = true;
    return 0;
  }
  calls_.emplace(static_cast<CallId>(id), std::move(call));
  return static_cast<CallId>(id);
}

void Grpc::send(CallId id, std::string_view message, bool last) {
  const auto found = calls_.find(id);
  if (found == calls_.end() || found->second->last) return;
  Call& call = *found->second;
  append_prefix(call.out.end(), message.size());
  call.out.end() += message;
  call.last = last;
  (void)nghttp2_session_resume_data(session_.get(), id);  // if nghttp2 waits for more
}

void Grpc::cancel(CallId id) {
  std::erase_if(events_, [id](const Event& event) { return event.call == id; });
  if (!calls_.contains(id)) return;
  forget(id);
  (void)nghttp2_submit_rst_stream(session_.get(), NGHTTP2_FLAG_NONE, id, NGHTTP2_CANCEL);
}

void Grpc::take_output(std::string& out) {
  out += std::exchange(output_, {});
  if (problem_.empty()) write(out);
}

void Grpc::write(std::string& out) {
  for (;;) {
    const std::uint8_t* data = nullptr;
    const ssize_t size = checked(nghttp2_session_mem_send(session_.get(), &data));
    if (size < 0) (void)fail(std::string("HTTP/2: ") + nghttp2_strerror(static_cast<int>(size)));
    if (size <= 0) return;
    out += text(data, static_cast<std::size_t>(size));
  }
}

// --- From the server -------------------------------------------------------------------------------------------------

bool Grpc::receive(std::string_view bytes) {
  if (!problem_.empty()) return false;
  if (http_1_ < http_1_greeting.size()) {
    const std::string_view next = http_1_greeting.substr(http_1_, bytes.size());
    http_1_ = bytes.starts_with(next) ? http_1_ + next.size() : std::string_view::npos;
    if (http_1_ == http_1_greeting.size()) return fail("the server speaks HTTP/1.1, not HTTP/2");
  }
  const auto* const data = reinterpret_cast<const std::uint8_t*>(bytes.data());
  const ssize_t taken = checked(nghttp2_session_mem_recv(session_.get(), data, bytes.size()));
  if (taken < 0) return fail(std::string("HTTP/2: ") + nghttp2_strerror(static_cast<int>(taken)));
  // If nghttp2 has given up the connection, its output has the reason (on_sent()). Otherwise the output stays in
  // nghttp2, which bounds its answers to pings and settings.
  if (nghttp2_session_check_request_allowed(session_.get()) == 0) write(output_);
  return problem_.empty();
}

bool Grpc::take_messages(CallId id, Call& call) {
  std::string_view rest = call.in;
  while (rest.size() >= prefix_size) {
    const std::size_t length = length_in(rest);
    if (rest.front() != 0) return fail("the server sent a compressed message");
    if (length > longest_message) {
      return fail("the server sent a message of " + std::to_string(length) + " bytes, more than " +
                  std::to_string(longest_message));
    }
    if (rest.size() - prefix_size < length) break;
    events_.push_back({.call = id, .message = std::string(rest.substr(prefix_size, length)), .status = {}});
    rest.remove_prefix(prefix_size + length);
  }
  rest.empty() ? common::empty_buffer(call.in) : void(call.in.erase(0, call.in.size() - rest.size()));
  return true;
}

// The server closes the connection. It has not begun the calls above that number, and gets no call that nghttp2 has not
// sent yet.
void Grpc::refuse_above(CallId last) {
  closing_ = true;
  std::vector<CallId> refused;
  for (const auto& [id, call] : calls_) {
    if (id > last || nghttp2_session_find_stream(session_.get(), id) == nullptr) refused.push_back(id);
  }
  std::ranges::sort(refused);
  for (const CallId id : refused) {
    end(id, {.code = GrpcStatus::unavailable, .message = "the server closes the connection", .not_carried_out = true});
  }
}

void Grpc::end(CallId id, GrpcStatus status) {
  forget(id);
  events_.push_back({.call = id, .message = std::nullopt, .status = std::move(status)});
}

void Grpc::forget(CallId id) {
  (void)nghttp2_session_set_stream_user_data(session_.get(), id, nullptr);
  calls_.erase(id);
}

std::optional<Grpc::Event> Grpc::next() {
  if (events_.empty()) return std::nullopt;
  std::optional<Event> event(std::move(events_.front()));
  events_.pop_front();
  return event;
}

}  // namespace dlock::etcd
