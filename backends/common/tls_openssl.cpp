#include <arpa/inet.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <new>
#include <system_error>
#include <utility>
#include <vector>

#include "backends/common/tls.hpp"

namespace dlock::common {

namespace {

struct FreeContext {
  void operator()(SSL_CTX* context) const noexcept { SSL_CTX_free(context); }
};
struct FreeSsl {
  void operator()(SSL* ssl) const noexcept { SSL_free(ssl); }
};

std::string openssl_error() {
  const unsigned long code = ERR_get_error();
  ERR_clear_error();
  if (code == 0) return "unknown error";
  if (ERR_SYSTEM_ERROR(code)) return std::system_category().message(ERR_GET_REASON(code));
  const char* reason = ERR_reason_error_string(code);
  return reason != nullptr ? reason : "error " + std::to_string(code);
}

bool is_address(const std::string& host) {
  std::array<unsigned char, sizeof(in6_addr)> bytes{};
  return inet_pton(AF_INET, host.c_str(), bytes.data()) == 1 || inet_pton(AF_INET6, host.c_str(), bytes.data()) == 1;
}

// Shared by the connections of a context.
struct Experience {
  bool trusted = false;      // a server's certificate was good
  bool failed = false;       // a connection has failed since the files were read
  std::string problem = {};  // with files that have changed; those in use are older
};

class OpenSslFilter final : public TlsFilter {
 public:
  OpenSslFilter(SSL_CTX* context, const std::string& host, std::shared_ptr<Experience> experience)
      : ssl_(SSL_new(context)), experience_(std::move(experience)) {
    if (!ssl_) throw std::bad_alloc();
    network_in_ = BIO_new(BIO_s_mem());
    network_out_ = BIO_new(BIO_s_mem());
    if (network_in_ == nullptr || network_out_ == nullptr) {
      BIO_free(network_in_);
      BIO_free(network_out_);
      throw std::bad_alloc();
    }
    SSL_set_bio(ssl_.get(), network_in_, network_out_);  // owns them now
    SSL_set_connect_state(ssl_.get());
    const bool named = is_address(host) ? X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(ssl_.get()), host.c_str()) == 1
                                        : SSL_set1_host(ssl_.get(), host.c_str()) == 1 &&
                                              SSL_set_tlsext_host_name(ssl_.get(), host.c_str()) == 1;
    // Without the name, a certificate for any host would be accepted.
    if (!named) fail("cannot check certificates for host \"" + host + "\"");
  }

  bool handshake() override {
    if (failure_.code) return false;
    ERR_clear_error();
    const int result = SSL_do_handshake(ssl_.get());
    if (result == 1) return experience_->trusted = true;
    judge("the TLS handshake failed", result);
    return false;
  }

  bool decrypt(std::string_view network, std::string& plain) override {
    if (failure_.code) return false;
    while (!network.empty()) {
      const int taken = BIO_write(network_in_, network.data(), static_cast<int>(network.size()));
      if (taken <= 0) return fail("out of memory in TLS");
      network.remove_prefix(static_cast<std::size_t>(taken));
    }
    if (SSL_is_init_finished(ssl_.get()) == 0) return true;  // handshake() continues with it
    std::array<char, 16384> buffer;
    for (;;) {
      ERR_clear_error();
      const int count = SSL_read(ssl_.get(), buffer.data(), static_cast<int>(buffer.size()));
      if (count <= 0) return judge("TLS", count);
      plain.append(buffer.data(), static_cast<std::size_t>(count));
    }
  }

  bool encrypt(std::string_view plain) override {
    if (failure_.code) return false;
    while (!plain.empty()) {
      ERR_clear_error();
      // A memory BIO takes everything, so there is no partial write.
      const int count = SSL_write(ssl_.get(), plain.data(), static_cast<int>(plain.size()));
      if (count <= 0) return judge("TLS", count) && fail("TLS: cannot write");
      plain.remove_prefix(static_cast<std::size_t>(count));
    }
    return true;
  }

  void take_output(std::string& network) override {
    char* data = nullptr;
    const long size = BIO_get_mem_data(network_out_, &data);
    if (size > 0) network.append(data, static_cast<std::size_t>(size));
    (void)BIO_reset(network_out_);  // of a memory BIO: cannot fail
  }

  [[nodiscard]] const Failure& failure() const noexcept override { return failure_; }

 private:
  bool fail(std::string why) {
    experience_->failed = true;
    if (!experience_->problem.empty()) why += "; " + experience_->problem;
    failure_ = {errc::unavailable, std::move(why)};
    return false;
  }

  // After a call that did not succeed. True: it only needs more bytes from the network.
  bool judge(const std::string& what, int result) {
    switch (SSL_get_error(ssl_.get(), result)) {
      case SSL_ERROR_WANT_READ:
      case SSL_ERROR_WANT_WRITE:
        return true;
      case SSL_ERROR_ZERO_RETURN:
        return fail("the server closed the TLS connection");
      default:
        break;
    }
    const long verdict = SSL_get_verify_result(ssl_.get());
    const bool untrusted = verdict != X509_V_OK;
    const bool other_protocol = ERR_GET_REASON(ERR_peek_error()) == SSL_R_WRONG_VERSION_NUMBER;
    (void)fail(what + ": " + (untrusted ? X509_verify_cert_error_string(verdict) : openssl_error()) +
               std::string(other_protocol ? perhaps_no_tls : ""));
    ERR_clear_error();
    // Final, because the next attempt would get the same certificate; unless one was good before, so that certificates
    // are perhaps being renewed.
    if (untrusted && !experience_->trusted) failure_.code = errc::access_denied;
    return false;
  }

  std::unique_ptr<SSL, FreeSsl> ssl_;
  BIO* network_in_ = nullptr;   // ssl_'s
  BIO* network_out_ = nullptr;  // ssl_'s
  const std::shared_ptr<Experience> experience_;
  Failure failure_;
};

// Certificates and keys as they were when this was made.
class OpenSslFiles {
 public:
  explicit OpenSslFiles(const TlsOptions& options) : context_(SSL_CTX_new(TLS_client_method())) {
    if (!context_) throw Error(errc::unavailable, "cannot set up TLS: " + openssl_error());
    SSL_CTX_set_verify(context_.get(), SSL_VERIFY_PEER, nullptr);
    SSL_CTX_set_mode(context_.get(), SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
    if (SSL_CTX_set_min_proto_version(context_.get(), TLS1_2_VERSION) != 1) refuse("TLS 1.2", "is not supported");
    if (!options.protocol.empty()) offer(options.protocol);
    if (options.ca_file.empty()) {
      if (SSL_CTX_set_default_verify_paths(context_.get()) != 1) refuse("the system's certificates", openssl_error());
    } else if (SSL_CTX_load_verify_locations(context_.get(), options.ca_file.c_str(), nullptr) != 1) {
      refuse("tls_ca: \"" + options.ca_file + "\"", openssl_error());
    }
    if (options.cert_file.empty()) return;
    if (SSL_CTX_use_certificate_chain_file(context_.get(), options.cert_file.c_str()) != 1) {
      refuse("tls_cert: \"" + options.cert_file + "\"", openssl_error());
    }
    if (SSL_CTX_use_PrivateKey_file(context_.get(), options.key_file.c_str(), SSL_FILETYPE_PEM) != 1) {
      refuse("tls_key: \"" + options.key_file + "\"", openssl_error());
    }
    if (SSL_CTX_check_private_key(context_.get()) != 1) {
      refuse("tls_key: \"" + options.key_file + "\"", "does not belong to the certificate in tls_cert");
    }
  }

  [[nodiscard]] SSL_CTX* get() const noexcept { return context_.get(); }

 private:
  void offer(const std::string& protocol) {
    const std::string list = static_cast<char>(protocol.size()) + protocol;
    const auto* const bytes = reinterpret_cast<const unsigned char*>(list.data());
    // 0: taken.
    if (SSL_CTX_set_alpn_protos(context_.get(), bytes, static_cast<unsigned>(list.size())) != 0) {
      throw Error(errc::unavailable, "cannot set up TLS: " + openssl_error());
    }
  }
  [[noreturn]] static void refuse(const std::string& what, const std::string& why) {
    throw Error(errc::invalid_argument, what + ": " + why);
  }

  std::unique_ptr<SSL_CTX, FreeContext> context_;
};

// Differs from the earlier one after a file was written or replaced.
struct Version {
  explicit Version(const std::string& path) { exists = ::stat(path.c_str(), &status) == 0; }
  // Other files, such as the pipes of a shell's <(command), may have their content only once.
  [[nodiscard]] bool is_regular() const noexcept { return !exists || S_ISREG(status.st_mode); }
  friend bool operator==(const Version& a, const Version& b) noexcept {
    const auto same = [](const timespec& s, const timespec& t) {
      return s.tv_sec == t.tv_sec && s.tv_nsec == t.tv_nsec;
    };
    return a.exists == b.exists && a.status.st_dev == b.status.st_dev && a.status.st_ino == b.status.st_ino &&
           a.status.st_size == b.status.st_size && same(a.status.st_mtim, b.status.st_mtim) &&
           same(a.status.st_ctim, b.status.st_ctim);
  }
  struct stat status {};
  bool exists = false;
};

class OpenSslContext final : public TlsContext {
 public:
  OpenSslContext(const TlsOptions& options, TlsWarning warn)
      : options_(options), warn_(std::move(warn)), versions_(versions()), files_(options) {}

  [[nodiscard]] std::unique_ptr<TlsFilter> filter(const std::string& host) const override {
    renew();
    return std::make_unique<OpenSslFilter>(files_.get(), host, experience_);
  }

 private:
  [[nodiscard]] std::vector<Version> versions() const {
    std::vector<Version> all;
    for (const std::string& path : {options_.ca_file, options_.cert_file, options_.key_file}) {
      if (!path.empty()) all.emplace_back(path);
    }
    return all;
  }

  void renew() const {
    std::vector<Version> now = versions();
    const bool changed = now != versions_;
    if (!changed) experience_->problem.clear();
    if (!changed && !experience_->failed) return;
    const auto is_regular = [](const Version& each) { return each.is_regular(); };
    if (!std::ranges::all_of(versions_, is_regular) || !std::ranges::all_of(now, is_regular)) return;
    try {
      files_ = OpenSslFiles(options_);
      versions_ = std::move(now);
      *experience_ = {.trusted = experience_->trusted};
    } catch (const Error& e) {
      const std::string before = std::exchange(experience_->problem, e.detail());
      if (warn_ && before != e.detail()) {
        warn_({errc::unavailable, e.detail() + "; the files that were read before remain in use"});
      }
    }
  }

  const TlsOptions options_;
  const TlsWarning warn_;
  // A new connection uses these.
  mutable std::vector<Version> versions_;  // taken before the files were read
  mutable OpenSslFiles files_;
  const std::shared_ptr<Experience> experience_ = std::make_shared<Experience>();
};

}  // namespace

std::shared_ptr<const TlsContext> make_tls_context(const TlsOptions& options, TlsWarning warn) {
  return std::make_shared<OpenSslContext>(options, std::move(warn));
}

}  // namespace dlock::common
