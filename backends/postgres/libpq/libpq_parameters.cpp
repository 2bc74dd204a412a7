#include "backends/postgres/libpq/libpq_parameters.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string_view>

#include <dlock/error.hpp>

#include "util/names.hpp"

namespace dlock::postgres {

namespace {

[[noreturn]] void refuse(const std::string& why) {
  throw Error(errc::invalid_argument, why);
}

// One of a few words.
struct Choice {
  std::string_view key;
  std::array<std::string_view, 6> words;
};
constexpr std::array choices = {
    Choice{"sslmode", {"disable", "allow", "prefer", "require", "verify-ca", "verify-full"}},
    Choice{"sslsni", {"0", "1"}},
    Choice{"ssl_min_protocol_version", {"TLSv1", "TLSv1.1", "TLSv1.2", "TLSv1.3"}},
    Choice{"ssl_max_protocol_version", {"TLSv1", "TLSv1.1", "TLSv1.2", "TLSv1.3"}},
    Choice{"channel_binding", {"disable", "prefer", "require"}},
    Choice{"gssencmode", {"disable", "prefer", "require"}},
    Choice{"keepalives", {"0", "1"}},
};

constexpr std::array<std::string_view, 9> texts = {"sslrootcert", "sslcert",  "sslkey",     "sslpassword", "sslcrl",
                                                   "sslcrldir",   "passfile", "krbsrvname", "requirepeer"};

// In seconds, except the count and the last one, which is in milliseconds.
struct Number {
  std::string_view key;
  std::uint32_t max;
};
constexpr std::array numbers = {Number{"keepalives_idle", 86400}, Number{"keepalives_interval", 86400},
                                Number{"keepalives_count", 1000}, Number{"tcp_user_timeout", 86400000}};

struct Refused {
  std::string_view key;
  std::string_view why;
};
constexpr std::array refused = {
    Refused{"hostaddr", "dlock resolves names itself; give the address as the host"},
    Refused{"options", "dlock sets what its sessions need, and poolers do not accept this parameter"},
    Refused{"service", "put the settings of the service file into the URL"},
    Refused{"client_encoding", "it is always UTF8"},
    Refused{"replication", "that is not a connection for queries"},
};

std::string in_words(const Choice& choice) {
  std::string out;
  for (const auto word : choice.words) {
    if (!word.empty()) out += (out.empty() ? "" : ", ") + std::string(word);
  }
  return out;
}

bool has_control(std::string_view value) {
  return std::any_of(value.begin(), value.end(), [](unsigned char c) { return c < 0x20 || c == 0x7f; });
}

using Taken = std::vector<std::pair<std::string, std::string>>;

// sslrootcert means that the server must be verified. libpq's default is to try TLS and, if the certificate is wrong,
// to connect without.
void require_verification(Taken& taken) {
  const auto find = [&](std::string_view key) {
    return std::find_if(taken.begin(), taken.end(), [&](const auto& parameter) { return parameter.first == key; });
  };
  if (find("sslrootcert") == taken.end()) return;
  const auto mode = find("sslmode");
  if (mode == taken.end()) {
    taken.emplace_back("sslmode", "verify-full");
    return;
  }
  constexpr std::array<std::string_view, 3> without = {"disable", "allow", "prefer"};
  if (std::find(without.begin(), without.end(), mode->second) != without.end()) {
    refuse("sslrootcert: with sslmode=" + mode->second +
           " libpq does not check the server's certificate against it; omit sslmode, or use verify-full");
  }
}

}  // namespace

std::vector<std::pair<std::string, std::string>> take_libpq_parameters(Url& url) {
  Taken taken;
  for (const auto& [key, value] : url.parameters()) {
    for (const Refused& parameter : refused) {
      if (key == parameter.key) refuse(key + ": " + std::string(parameter.why));
    }
  }
  for (const Choice& choice : choices) {
    auto value = url.take(choice.key);
    if (!value) continue;
    if (value->empty() || std::find(choice.words.begin(), choice.words.end(), *value) == choice.words.end()) {
      refuse(std::string(choice.key) + " must be one of " + in_words(choice) + ", not " + util::quoted(*value));
    }
    taken.emplace_back(choice.key, *std::move(value));
  }
  for (const std::string_view key : texts) {
    auto value = url.take(key);
    if (!value) continue;
    // The value is not shown: one of them is a password.
    if (value->empty()) refuse(std::string(key) + ": is empty");
    if (has_control(*value)) refuse(std::string(key) + ": has a control character");
    taken.emplace_back(key, *std::move(value));
  }
  for (const Number& number : numbers) {
    if (const auto value = url.take_number(number.key, 0, number.max)) {
      taken.emplace_back(number.key, std::to_string(*value));
    }
  }
  require_verification(taken);
  return taken;
}

}  // namespace dlock::postgres
