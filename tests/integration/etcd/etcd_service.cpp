// etcd as the rooms have it: one member, and a user who may write what locks need and nothing else.
#include "etcd/etcd_test.hpp"

namespace dlock::test {

namespace {

using Answer = ScriptedServer::Answer;

EtcdConfig config_with(const std::string& tls_names) {
  EtcdConfig config{.tls = !tls_names.empty(), .user = EtcdUser{}, .options = {"--bcrypt-cost=4"}};
  if (config.tls) config.tls_names = tls_names;
  return config;
}

class EtcdService final : public Service {
 public:
  explicit EtcdService(const std::string& tls_names) : server_(config_with(tls_names)) {}

  [[nodiscard]] std::uint16_t port() const override { return server_.port(); }
  [[nodiscard]] std::string url_at(std::uint16_t port, const std::string& parameters) const override {
    return server_.url_at(port, parameters);
  }
  [[nodiscard]] std::string plain_url(std::uint16_t port) const override {
    return "etcd://locker:locker-secret@127.0.0.1:" + std::to_string(port);
  }
  [[nodiscard]] std::string tls_url(std::uint16_t port, const std::string& authority) const override {
    return "etcds" + plain_url(port).substr(4) + (authority.empty() ? "" : "?tls_ca=" + authority);
  }
  [[nodiscard]] std::string authority() const override { return server_.certificate().authority(); }
  void renew_certificate() override { server_.certificate().renew(); }
  [[nodiscard]] std::string url_of_stranger(const std::string& password, const std::string& parameters) override {
    return "etcd://locker:" + password + "@127.0.0.1:" + std::to_string(port()) + "?" + parameters;
  }
  void stop() override { server_.stop(); }
  void kill() override { server_.kill(); }
  void start() override { server_.start(); }
  void freeze() override { server_.freeze(); }
  void thaw() override { server_.thaw(); }
  void clear() override { keys_.remove_all(); }
  [[nodiscard]] std::size_t residue(const std::string& /*strategy*/, const std::string& name) override {
    return keys_.residue(name);
  }
  [[nodiscard]] bool remembers(const std::string& /*strategy*/, const std::string& name) override {
    return keys_.residue(name) > 0;
  }
  [[nodiscard]] bool has_waiter(const std::string& /*strategy*/, const std::string& name) override {
    return keys_.residue(name) > 1;
  }

 private:
  EtcdServer server_;
  Keys keys_{server_};
};

// --- HTTP/2, as far as it takes to be polite -------------------------------------------------------------------------

std::string frame(char type, char flags, char stream, const std::string& content, std::size_t length) {
  std::string text;
  for (const unsigned shift : {16U, 8U, 0U}) text += static_cast<char>(length >> shift & 0xffU);
  text += type;
  text += flags;
  return text + std::string(3, '\0') + stream + content;
}

std::string frame(char type, char flags, char stream, const std::string& content = {}) {
  return frame(type, flags, stream, content, content.size());
}

constexpr char of_data = 0;
constexpr char of_headers = 1;
constexpr char of_settings = 4;
constexpr char of_push = 5;
constexpr char of_goaway = 7;
constexpr char end_of_headers = 4;
constexpr char first_call = 1;

std::string headers() {
  const std::string type = "application/grpc";
  const std::string status_200(1, '\x88');
  const std::string content_type = std::string("\x5f", 1) + static_cast<char>(type.size()) + type;
  return frame(of_headers, end_of_headers, first_call, status_200 + content_type);
}

// A message of this length is announced.
std::string message(std::size_t length) {
  std::string text(1, '\0');
  for (const unsigned shift : {24U, 16U, 8U, 0U}) text += static_cast<char>(length >> shift & 0xffU);
  return text;
}

std::string data(const std::string& content) {
  return frame(of_data, 0, first_call, content);
}

// Its settings when a connection has come, and the answer once a call has been made.
ScriptedServer::Script polite_until_asked(Answer answer) {
  return [answer = std::move(answer)](const std::string& received) {
    if (received.empty()) return Answer{};
    if (received.starts_with("PRI ")) return Answer{.bytes = frame(of_settings, 0, 0)};
    return answer;
  };
}

std::unique_ptr<Service> start(const std::string& tls_names) {
  return std::make_unique<EtcdService>(tls_names);
}

}  // namespace

const ServiceKind& service_kind() {
  static const ServiceKind kind{
      .name = "etcd",
      .strategies = {"queue"},
      .start = start,
      .parameters = [](const std::string& /*strategy*/) { return "names=escaped"; },  // there is but one
      .long_lease = 5min,
      .lock_request = "dlock/",
      .keeps_free_locks = false,
      .hostile_url = [](std::uint16_t port) { return "etcd://127.0.0.1:" + std::to_string(port) + "?"; },
      .polite_until_asked = polite_until_asked,
      .hostilities =
          {
              {"redirect", {.bytes = "HTTP/1.1 301 Moved\r\nLocation: http://127.0.0.1:1/\r\n\r\n", .close = true}},
              {"endless_garbage", {.repeat = std::string("\x7f\x00\xfe", 3)}},
              {"endless_settings", {.repeat = frame(of_settings, 0, 0)}},
              {"giant_frame", {.bytes = frame(of_data, 0, first_call, "x", 0xffffff), .repeat = "x"}},
              {"giant_message", {.bytes = headers() + data(message(0xffffffff)), .repeat = data("xxxxxxxx")}},
              {"half_a_message_and_end", {.bytes = headers() + data(message(100) + "x"), .close = true}},
              {"endless_headers", {.repeat = headers()}},
              {"headers_without_end",
               {.bytes = frame(of_headers, 0, first_call, "\x88"),
                .repeat = frame(9, 0, first_call, std::string("\x40\x01y\x01z", 5))}},
              {"unasked_push", {.bytes = frame(of_push, end_of_headers, first_call, std::string(4, '\2'))}},
              {"goaway", {.bytes = frame(of_goaway, 0, 0, std::string(8, '\0'))}},
              {"web_page", {.bytes = headers() + data("<html>")}},
          },
  };
  return kind;
}

}  // namespace dlock::test
