#include "backends/etcd/wire/grpc.hpp"

#include "grpc_server.hpp"

namespace dlock::etcd {
namespace {

using namespace std::string_literals;
using test::framed;
using test::GrpcServer;

TEST_F(GrpcTest, Call_HasTheHeadersOfGrpcAndIsAnswered) {
  const Grpc::CallId id = grpc_.begin("/etcdserverpb.KV/Txn", {{"hasleader", "true"}, {"token", "se.cret"}});
  ASSERT_EQ(id, 1);
  EXPECT_EQ(grpc_.under_way(), 1U);
  grpc_.send(id, "a\0b"s, true);
  ASSERT_TRUE(exchange());
  const GrpcServer::Call& call = server_.call(id);
  EXPECT_EQ(call.headers, (std::map<std::string, std::string>{{":method", "POST"},
                                                              {":scheme", "http"},
                                                              {":path", "/etcdserverpb.KV/Txn"},
                                                              {":authority", "h1:2379"},
                                                              {"te", "trailers"},
                                                              {"content-type", "application/grpc"},
                                                              {"hasleader", "true"},
                                                              {"token", "se.cret"}}));
  EXPECT_EQ(call.messages, Said{"a\0b"s});
  EXPECT_TRUE(call.ended);
  server_.answer(id, "answer");
  EXPECT_EQ(heard_of(id), (Said{"answer", "=0"}));
  EXPECT_FALSE(end_of(id).not_carried_out);
  EXPECT_EQ(grpc_.under_way(), 0U);
  EXPECT_FALSE(server_.call(id).was_reset);
  Grpc secure("h1:2379", true);
  GrpcServer other;
  std::string out;
  EXPECT_EQ(secure.begin(some_method, {}), 1);
  secure.take_output(out);
  other.receive(out);
  EXPECT_EQ(other.call(1).headers.at(":scheme"), "https");
}

TEST_F(GrpcTest, LongRequest_PassesThroughSmallWindows) {
  constexpr std::uint32_t small = 4096;
  const GrpcServer::Settings settings = {{NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, small},
                                         {NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, 3}};
  GrpcServer server(settings);
  std::string request(std::size_t{3} << 20, 'x');
  for (std::size_t i = 0; i < request.size(); i += 1000) request[i] = static_cast<char>('a' + i / 1000 % 26);
  server.receive(output());
  EXPECT_FALSE(grpc_.greeted());
  ASSERT_TRUE(grpc_.receive(server.output()));
  EXPECT_TRUE(grpc_.greeted());
  EXPECT_EQ(grpc_.most_calls(), 3U);
  const Grpc::CallId id = begin_call(request);
  int rounds = 0;
  for (std::string out = output(); !out.empty(); out = output()) {
    server.receive(out);
    ASSERT_TRUE(grpc_.receive(server.output()));
    ASSERT_LT(++rounds, 10000);
  }
  EXPECT_GT(rounds, 100);
  ASSERT_EQ(server.call(id).messages.size(), 1U);
  EXPECT_TRUE(server.call(id).messages[0] == request);
  EXPECT_TRUE(server.call(id).ended);
}

TEST_F(GrpcTest, Stream_HasSeveralMessagesBothWays) {
  const Grpc::CallId id = make_call("one", false);
  server_.respond(id);
  server_.send(id, "uno");
  EXPECT_EQ(heard_of(id), Said{"uno"});
  grpc_.send(id, "two", false);
  ASSERT_TRUE(exchange());
  EXPECT_FALSE(server_.call(id).ended);
  server_.send(id, "due");
  grpc_.send(id, "three", true);
  ASSERT_TRUE(exchange());
  EXPECT_EQ(server_.call(id).messages, (Said{"one", "two", "three"}));
  EXPECT_TRUE(server_.call(id).ended);
  server_.send(id, "tre");
  server_.finish(id);
  EXPECT_EQ(heard_of(id), (Said{"uno", "due", "tre", "=0"}));
  EXPECT_FALSE(server_.call(id).was_reset);
}

TEST_F(GrpcTest, MessagesCutAnywhere_AreReadWhole) {
  const std::string bytes = framed("message") + framed("") + framed("other");
  for (std::size_t at = 0; at <= bytes.size(); ++at) {
    const Grpc::CallId id = make_call();
    server_.respond(id);
    server_.send_bytes(id, bytes.substr(0, at));
    ASSERT_TRUE(exchange());  // a frame of its own
    server_.send_bytes(id, bytes.substr(at));
    server_.finish(id);
    EXPECT_EQ(heard_of(id), (Said{"message", "", "other", "=0"})) << "cut at " << at;
  }
  const std::string longest(std::size_t{4} << 20, 'm');
  const Grpc::CallId id = make_call();
  server_.answer(id, longest);
  EXPECT_TRUE(heard_of(id) == (Said{longest, "=0"}));
  const Grpc::CallId longer = make_call();
  server_.respond(longer);
  server_.send_bytes(longer, "\0\0\x80\0\0"s);
  EXPECT_TRUE(exchange()) << "eight mebibytes may come";
}

TEST_F(GrpcTest, CallEnds_WithTheStatusThatItsFramesMean) {
  struct Row {
    const char* what;
    GrpcServer::Headers headers;  // empty: none
    std::string bytes;
    GrpcServer::Headers trailers;  // empty: none
    int code;
    std::string message;
    std::optional<std::uint32_t> reset = std::nullopt;
  };
  const GrpcServer::Headers usual = GrpcServer::usual();
  const GrpcServer::Headers html = {{":status", "200"}, {"content-type", "text/html"}};
  const auto status = [](const std::string& code, const std::string& message = "") {
    return GrpcServer::Headers{{"grpc-status", code}, {"grpc-message", message}};
  };
  const std::string half = framed("message").substr(0, 9);
  const std::string no_status = "a call ended without a status";
  const std::string cut_off = "a call ended in the middle of a message";
  const std::string aborted = "a call was aborted: ";
  std::vector<Row> rows = {
      {"percent-encoded", usual, "", status("13", "50%25 of %E2%82%AC%0A"), 13, "50% of €\n"},
      {"a plus sign", usual, "", status("13", "plus+text"), 13, "plus+text"},
      {"percent at the end", usual, "", status("13", "100%"), 13, "100%"},
      {"percent before letters", usual, "", status("13", "%zz"), 13, "%zz"},
      {"text/html", html, "<html>", {}, 2, "the answer is not gRPC"},
      {"no trailers", usual, framed("lonely"), {}, 2, no_status},
      {"trailers without a status", usual, "", {{"grpc-message", "well?"}}, 2, no_status},
      {"headers alone without a status", usual, "", {}, 2, no_status},
      {"no number", usual, "", status("OK", "odd"), 2, "odd"},
      {"a negative number", usual, "", status("-1", "odd"), 2, "odd"},
      {"half a message", usual, half, status("0"), 13, cut_off},
      {"half a prefix", usual, "\0\0"s, status("0"), 13, cut_off},
      {"half a message, refused", usual, half, status("14", "leader changed"), 14, "leader changed"},
      {"RST_STREAM", {}, "", {}, 14, aborted + "INTERNAL_ERROR", NGHTTP2_INTERNAL_ERROR},
      {"RST_STREAM behind headers", usual, "", {}, 14, aborted + "CANCEL", NGHTTP2_CANCEL},
      {"RST_STREAM without an error", usual, "", {}, 14, aborted + "NO_ERROR", NGHTTP2_NO_ERROR},
      {"the same before the headers", {}, "", {}, 14, aborted + "NO_ERROR", NGHTTP2_NO_ERROR},
      {"not carried out", {}, "", {}, 14, aborted + "REFUSED_STREAM", NGHTTP2_REFUSED_STREAM},
  };
  for (const auto& [http, code] : std::map<std::string, int>{
           {"404", 2}, {"429", 14}, {"500", 2}, {"501", 2}, {"502", 14}, {"503", 14}, {"504", 14}, {"505", 2}}) {
    const GrpcServer::Headers page = {{":status", http}, {"content-type", "text/html"}};
    rows.push_back({"a page", page, "<html>", {}, code, "HTTP status " + http + " instead of an answer"});
  }
  for (const Row& row : rows) {
    SCOPED_TRACE(row.what);
    const Grpc::CallId id = make_call();
    if (!row.headers.empty()) server_.respond(id, row.headers);
    if (!row.bytes.empty()) server_.send_bytes(id, row.bytes);
    if (row.reset) {
      server_.reset(id, *row.reset);
    } else {
      server_.finish_with(id, row.trailers);
    }
    ASSERT_TRUE(exchange());
    const GrpcStatus end = end_of(id);
    EXPECT_EQ(end.code, row.code);
    EXPECT_EQ(end.message, row.message);
    EXPECT_EQ(end.not_carried_out, row.reset == NGHTTP2_REFUSED_STREAM);
  }
  EXPECT_EQ(grpc_.under_way(), 0U);
}

TEST_F(GrpcTest, InterimAnswerAndTrailers_DoNotChangeTheAnswer) {
  const Grpc::CallId id = make_call();
  // :status 100 in HPACK, not indexed, by the name of the static table's entry 8.
  ASSERT_TRUE(grpc_.receive(frame_of(NGHTTP2_HEADERS, NGHTTP2_FLAG_END_HEADERS, 1, "\x08\x03" + "100"s)));
  server_.respond(id);
  server_.send(id, "answer");
  server_.finish_with(id, {{"content-type", "text/plain"}, {"grpc-status", "5"}});
  EXPECT_EQ(heard_of(id), (Said{"answer", "=5"}));
}

// Shows: nothing-guessed
// Hazard: a connection breaks with unread requests: the member reports them
TEST_F(GrpcTest, ServerGoesAway_ReportsTheCallsThatItTook) {
  const Grpc::CallId taken = begin_call();
  const Grpc::CallId above = make_call();
  const Grpc::CallId unsent = begin_call();
  EXPECT_FALSE(grpc_.closing());
  server_.go_away(taken);
  ASSERT_TRUE(grpc_.receive(server_.output()));
  EXPECT_TRUE(grpc_.closing());
  EXPECT_EQ(grpc_.begin(some_method, {}), 0);
  EXPECT_EQ(said_of(above), Said{"=14"});
  EXPECT_TRUE(end_of(above).not_carried_out);
  EXPECT_EQ(said_of(unsent), Said{"=14"});
  EXPECT_TRUE(end_of(unsent).not_carried_out);
  server_.receive(output());
  EXPECT_EQ(server_.calls(), 2U);
  EXPECT_EQ(grpc_.under_way(), 1U);
  server_.answer(taken, "still");
  ASSERT_TRUE(grpc_.receive(server_.output()));
  EXPECT_EQ(said_of(taken), (Said{"still", "=0"}));
  EXPECT_EQ(grpc_.under_way(), 0U);
}

// A page of a proxy ends a call before the page ends.
TEST_F(GrpcTest, AnsweredBeforeTheLastMessage_IsResetAndEndsOnce) {
  struct Row {
    const char* what;
    GrpcServer::Headers headers;
    std::string bytes;
    std::optional<std::string> status;
    std::string said;
  };
  for (const Row& row : {Row{"trailers", GrpcServer::usual(), "", "14", "=14"},
                         {"403", {{":status", "403"}, {"content-type", "application/grpc"}}, "<html>", {}, "=2"},
                         {"text/html", {{":status", "200"}, {"content-type", "text/html"}}, "<html>", {}, "=2"}}) {
    SCOPED_TRACE(row.what);
    const Grpc::CallId id = make_call("one", false);
    server_.respond(id, row.headers);
    server_.send_bytes(id, row.bytes);
    if (row.status) server_.finish(id, *row.status);
    EXPECT_EQ(heard_of(id), Said{row.said});
    EXPECT_TRUE(server_.call(id).was_reset) << "or it would stay open for ever";
    grpc_.send(id, "two", false);
    ASSERT_TRUE(exchange());
    EXPECT_EQ(server_.call(id).messages, Said{"one"});
    EXPECT_EQ(said_of(id), Said{row.said}) << "its end is told once";
  }
}

TEST_F(GrpcTest, RequestRefusedBeforeItIsRead_EndsTheCall) {
  GrpcServer server({{NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, 100}});
  server.receive(output());
  ASSERT_TRUE(grpc_.receive(server.output()));
  const Grpc::CallId id = begin_call(std::string(100000, 'x'));
  server.receive(output());
  server.refuse(id, "8", "etcdserver: request is too large");
  ASSERT_TRUE(grpc_.receive(server.output()));
  EXPECT_EQ(said_of(id), Said{"=8"});
  server.receive(output());
  EXPECT_TRUE(server.call(id).was_reset);
  EXPECT_EQ(server.call(id).messages, Said{});
}

TEST_F(GrpcTest, CallCancelled_IsResetAndItsEventsDropped) {
  const Grpc::CallId id = begin_call("one", false);
  const Grpc::CallId other = make_call();
  server_.respond(id);
  server_.send(id, "queued");
  server_.answer(other, "kept");
  ASSERT_TRUE(exchange());
  grpc_.cancel(id);
  EXPECT_EQ(grpc_.under_way(), 0U);
  server_.send(id, "on its way");
  ASSERT_TRUE(grpc_.receive(server_.output()));
  ASSERT_TRUE(exchange());
  EXPECT_TRUE(server_.call(id).was_reset);
  EXPECT_EQ(server_.call(id).reset_code, static_cast<std::uint32_t>(NGHTTP2_CANCEL));
  EXPECT_EQ(said_of(id), Said{});
  EXPECT_EQ(said_of(other), (Said{"kept", "=0"}));
}

TEST_F(GrpcTest, EndedCallCancelled_SendsNothing) {
  const Grpc::CallId id = make_call();
  server_.answer(id, "answer");
  ASSERT_TRUE(exchange());
  grpc_.cancel(id);
  EXPECT_EQ(said_of(id), Said{}) << "its events were queued";
  grpc_.cancel(id);
  grpc_.send(id, "more", true);
  grpc_.cancel(99);
  EXPECT_EQ(output(), "");
  const Grpc::CallId unsent = begin_call("one", true);
  const Grpc::CallId other = begin_call("one", true);
  grpc_.cancel(unsent);
  grpc_.send(other, "behind the last", true);
  ASSERT_TRUE(exchange());
  EXPECT_EQ(server_.calls(), 2U) << "the server never sees a call that is cancelled before it is sent";
  EXPECT_EQ(server_.call(other).messages, Said{"one"});
}

// The limits hold, and what arrived before is kept.
// Hazard: a hostile server: limits
TEST_F(GrpcTest, FramesThatNoServerShouldSend_BreakTheConnection) {
  struct Row {
    const char* what;
    std::string bytes;
    std::string problem;  // how it begins
    Said said = {};
  };
  const std::string settings = frame_of(NGHTTP2_SETTINGS, 0, 0, "");
  const std::string begin = settings + headers_frame(usual_headers);
  const auto data = [](const std::string& bytes) { return frame_of(NGHTTP2_DATA, 0, 1, bytes); };
  const std::string many = header_field("x", std::string(15000, 'x'));
  // Each byte stands for an entry of the table of headers.
  const std::string indexed = "\x88\x40\1x\1y" + std::string(64000, '\xbe');
  // Of PUSH_PROMISE: stream 2, ":method: GET", ":scheme: http", ":path: /", ":authority: h".
  const std::string promise = "\0\0\0\x02\x82\x86\x84\x41\x01h"s;
  const std::string too_long = "the server sent headers of more than 65536 bytes";
  std::string flood = settings;
  for (int i = 0; i < 2000; ++i) flood += frame_of(NGHTTP2_PING, 0, 0, "12345678");
  const std::vector<Row> rows = {
      {"HTTP/1.1", "HTTP/1.1 400 Bad Request\r\n\r\n", "the server speaks HTTP/1.1, not HTTP/2"},
      {"garbage", "\x15\x03\x03\0\x02\x02\x28 is an alert of TLS, and this is more of it"s, "HTTP/2: "},
      {"a push",
       settings + frame_of(NGHTTP2_SETTINGS, NGHTTP2_FLAG_ACK, 0, "") +
           frame_of(NGHTTP2_PUSH_PROMISE, NGHTTP2_FLAG_END_HEADERS, 1, promise),
       "HTTP/2: PROTOCOL_ERROR"},
      {"headers that cannot be read", settings + headers_frame("\xff\xff\xff\xff\xff\xff\xff\xff"),
       "HTTP/2: COMPRESSION_ERROR"},
      {"a compressed message",
       begin + data(framed("good") + "\x01\0\0\0\x01x"s + framed("never")),
       "the server sent a compressed message",
       {"good"}},
      {"a long message", begin + data("\0\0\x80\0\x01"s),
       "the server sent a message of 8388609 bytes, more than 8388608"},
      {"long headers", settings + headers_frame(usual_headers + many + many + many + many + many), too_long},
      {"trailers, which count, too",
       settings + headers_frame(usual_headers + many + many + many) + data(framed("message")) +
           headers_frame(many + many),
       too_long,
       {"message"}},
      {"many headers", settings + headers_frame(indexed), too_long},
      {"a flood of pings", flood, ""},
  };
  for (const Row& row : rows) {
    for (const std::size_t step : {row.bytes.size(), std::size_t{1}, std::size_t{5}}) {
      if (row.bytes.size() > 1000 * step) continue;  // nghttp2 minds how often a long header is continued
      SCOPED_TRACE(row.what + (", " + std::to_string(step) + " at a time"));
      Grpc grpc("h1:2379", false);
      grpc.send(grpc.begin(some_method, {}), "request", true);
      std::string out;
      grpc.take_output(out);
      bool well = true;
      for (std::size_t at = 0; at < row.bytes.size(); at += step) well = grpc.receive(row.bytes.substr(at, step));
      EXPECT_FALSE(well);
      EXPECT_TRUE(!grpc.problem().empty() && grpc.problem().starts_with(row.problem)) << grpc.problem();
      Said said;
      while (const auto event = grpc.next()) said.push_back(event->message.value_or("an end"));
      EXPECT_EQ(said, row.said);
      EXPECT_FALSE(grpc.receive("more"));
      EXPECT_EQ(grpc.begin(some_method, {}), 0);
      out.clear();
      grpc.take_output(out);
      EXPECT_LT(out.size(), 1000U) << "a flood is not answered";
    }
  }
}

// A push names the call that it belongs to, and has headers of its own.
TEST_F(GrpcTest, HeadersOfAPush_AreNotThoseOfTheCall) {
  const Grpc::CallId id = begin_call();
  (void)output();
  const std::string promise = "\0\0\0\x02\x82\x86\x84\x41\x01h\0\x0bgrpc-status\x01"s + "9";
  ASSERT_TRUE(grpc_.receive(
      frame_of(NGHTTP2_SETTINGS, 0, 0, "") + frame_of(NGHTTP2_PUSH_PROMISE, NGHTTP2_FLAG_END_HEADERS, 1, promise) +
      frame_of(NGHTTP2_HEADERS, NGHTTP2_FLAG_END_HEADERS | NGHTTP2_FLAG_END_STREAM, 1, usual_headers)))
      << grpc_.problem();
  EXPECT_EQ(end_of(id).message, "a call ended without a status");
}

TEST_F(GrpcTest, ClosingServerBreaksTheProtocol_IsSentGoAway) {
  const Grpc::CallId id = make_call();
  server_.go_away(id);
  ASSERT_TRUE(exchange());
  EXPECT_FALSE(grpc_.receive(frame_of(NGHTTP2_DATA, 0, 99, "of a call that was not begun")));
  EXPECT_TRUE(grpc_.problem().starts_with("HTTP/2: PROTOCOL_ERROR")) << grpc_.problem();
  server_.receive(output());
  EXPECT_TRUE(server_.was_left());
  EXPECT_EQ(output(), "");
}

}  // namespace
}  // namespace dlock::etcd
