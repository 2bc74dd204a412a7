// A connection with etcd, as a program would have it that knows of nothing but blocking calls.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "backends/common/tls.hpp"
#include "backends/etcd/wire/grpc.hpp"
#include "torture/rig/url_text.hpp"
#include "util/unique_fd.hpp"

namespace dlock::bench {

// Of an etcd:// or etcds:// URL.
[[nodiscard]] std::vector<rig::HostPort> etcd_hosts(const rig::UrlText& url);

class EtcdConnection {
 public:
  // To the first host that answers, as the user that the URL names. Throws std::runtime_error if none does, or the user
  // is refused.
  explicit EtcdConnection(const rig::UrlText& url);
  EtcdConnection(const EtcdConnection&) = delete;
  EtcdConnection& operator=(const EtcdConnection&) = delete;

  // Sends the request and waits for the answer. Throws std::runtime_error if it is a refusal, or the connection breaks.
  [[nodiscard]] std::string call(std::string_view path, std::string_view request);

 private:
  void shake_hands(const std::string& host, const rig::UrlText& url);
  void flush();
  // Waits for bytes from the server.
  void receive();
  // Of the network.
  [[nodiscard]] std::string read_some() const;
  void write_all(std::string_view bytes) const;

  util::UniqueFd socket_;
  std::unique_ptr<common::TlsFilter> tls_;  // none: plain text
  std::unique_ptr<etcd::Grpc> grpc_;
  etcd::Grpc::Metadata metadata_;
};

}  // namespace dlock::bench
