#include "backends/redis/connection/server_error.hpp"

#include <algorithm>
#include <array>
#include <cstddef>

#include "util/names.hpp"

namespace dlock::redis {

namespace {

struct Code {
  std::string_view text;
  ServerError error;
};

constexpr std::array known_codes = {
    Code{"NOSCRIPT", ServerError::no_script},
    Code{"LOADING", ServerError::loading},
    Code{"BUSY", ServerError::busy},
    Code{"READONLY", ServerError::read_only},
    Code{"REDIRECT", ServerError::read_only},  // Valkey
    Code{"UNBLOCKED", ServerError::interrupted},
    Code{"MASTERDOWN", ServerError::master_down},
    Code{"NOREPLICAS", ServerError::no_replicas},
    Code{"OOM", ServerError::out_of_memory},
    Code{"MISCONF", ServerError::misconfigured},
    Code{"NOAUTH", ServerError::no_auth},
    Code{"WRONGPASS", ServerError::wrong_password},
    Code{"NOPERM", ServerError::no_permission},
    Code{"DENIED", ServerError::no_permission},
    Code{"WRONGTYPE", ServerError::wrong_type},
    Code{"MOVED", ServerError::moved},
    Code{"ASK", ServerError::ask},
    Code{"CLUSTERDOWN", ServerError::cluster_down},
    Code{"TRYAGAIN", ServerError::try_again},
    Code{"CROSSSLOT", ServerError::cluster},
};

// Errors that have no code of their own.
constexpr std::array known_sentences = {
    Code{"The user executing the script can't", ServerError::no_permission},  // 7.0
    Code{"ACL failure in script", ServerError::no_permission},                // 7.2
    Code{"AUTH <password> called without any password", ServerError::wrong_password},
    Code{"invalid password", ServerError::wrong_password},
    Code{"operation not permitted", ServerError::no_auth},
    Code{"WAIT cannot be used with replica instances", ServerError::read_only},
    Code{"max number of clients", ServerError::too_many_clients},
    Code{"DB index is out of range", ServerError::no_such_db},
    Code{"invalid DB index", ServerError::no_such_db},
    Code{"SELECT is not allowed in cluster mode", ServerError::cluster},
    Code{"cluster support disabled", ServerError::no_cluster},
    Code{"unknown command", ServerError::unknown_command},
    Code{"Unknown Redis command", ServerError::unknown_command},
    Code{"command not allowed when used memory", ServerError::out_of_memory},
};

// The code as a word of its own, so that "BUSY" is not found in "BUSYGROUP".
bool contains_word(std::string_view text, std::string_view word) noexcept {
  const auto ends_word = [&](std::size_t at) { return at >= text.size() || text[at] == ' ' || text[at] == ':'; };
  for (std::size_t at = text.find(word); at != std::string_view::npos; at = text.find(word, at + 1)) {
    const bool starts_word = at == 0 || text[at - 1] == ' ' || text[at - 1] == '-';
    if (starts_word && ends_word(at + word.size())) return true;
  }
  return false;
}

// The error code for the caller, and the words in front of the server's own.
struct Meaning {
  ServerError error;
  errc code;
  std::string_view explanation = "Redis: ";
};

constexpr std::string_view replica = "this Redis is a replica: ";
constexpr std::string_view cluster_node = "this is a node of a cluster; use redis-cluster://: ";

constexpr std::array meanings = {
    Meaning{ServerError::no_script, errc::unavailable},
    Meaning{ServerError::loading, errc::unavailable},
    Meaning{ServerError::busy, errc::unavailable},
    Meaning{ServerError::read_only, errc::unavailable, replica},
    Meaning{ServerError::master_down, errc::unavailable, replica},
    Meaning{ServerError::no_replicas, errc::unavailable, "Redis has too few replicas to accept writes: "},
    Meaning{ServerError::out_of_memory, errc::unavailable},
    Meaning{ServerError::misconfigured, errc::unavailable},
    Meaning{ServerError::too_many_clients, errc::unavailable},
    Meaning{ServerError::interrupted, errc::unavailable},
    Meaning{ServerError::no_auth, errc::access_denied, "Redis requires a password, and the URL has none: "},
    Meaning{ServerError::wrong_password, errc::access_denied},
    Meaning{ServerError::no_permission, errc::access_denied},
    Meaning{ServerError::wrong_type, errc::protocol, "the lock's key holds something that is not a lock: "},
    Meaning{ServerError::moved, errc::unsupported, cluster_node},
    Meaning{ServerError::ask, errc::unsupported, cluster_node},
    Meaning{ServerError::try_again, errc::unsupported, cluster_node},
    Meaning{ServerError::cluster_down, errc::unsupported, cluster_node},
    Meaning{ServerError::cluster, errc::unsupported, cluster_node},
    Meaning{ServerError::no_cluster, errc::unsupported, "this server is not a node of a cluster; use redis://: "},
    Meaning{ServerError::no_such_db, errc::invalid_argument, "the database in the URL's path: "},
    Meaning{ServerError::unknown_command, errc::unsupported},
    Meaning{ServerError::other, errc::ambiguous},
};

constexpr const Meaning& meaning_of(ServerError error) noexcept {
  return meanings[static_cast<std::size_t>(error)];
}
static_assert(std::all_of(meanings.begin(), meanings.end(),
                          [](const Meaning& each) { return &each == &meaning_of(each.error); }) &&
              &meaning_of(ServerError::other) == &meanings.back());

// The command that a server does not know, which the error quotes: Redis 5 in backquotes.
std::string_view unknown_command(std::string_view text) noexcept {
  constexpr std::string_view quotes = "'`";
  const std::size_t begin = std::min(text.find_first_of(quotes), text.size());
  const std::string_view rest = text.substr(std::min(begin + 1, text.size()));
  return rest.substr(0, rest.find_first_of(quotes));
}

std::string_view explanation(std::string_view text, ServerError error) noexcept {
  const std::string_view usual = meaning_of(error).explanation;
  if (error != ServerError::unknown_command) return usual;
  const std::string_view command = unknown_command(text);
  if (command == "SENTINEL") return "this server is not a sentinel: ";
  for (const std::string_view of_every_redis : {"EVAL", "EVALSHA", "SCAN", "CLUSTER"}) {
    if (command == of_every_redis) return "perhaps this is a sentinel; use redis-sentinel://: ";
  }
  return usual;
}

std::string_view type_name(Reply::Type type) {
  switch (type) {
    case Reply::Type::nil:
      return "nil";
    case Reply::Type::status:
      return "a status";
    case Reply::Type::error:
      return "an error";
    case Reply::Type::integer:
      return "a number";
    case Reply::Type::string:
      return "a string";
    case Reply::Type::array:
      return "an array";
  }
  return "?";
}

}  // namespace

ServerError classify(std::string_view text) noexcept {
  const std::string_view first = text.substr(0, text.find(' '));
  for (const Code& code : known_codes) {
    if (first == code.text) return code.error;
  }
  for (const Code& sentence : known_sentences) {
    if (text.find(sentence.text) != std::string_view::npos) return sentence.error;
  }
  // Servers before 7.0 wrap the error of a command inside a script: "ERR Error running script ...: -READONLY ...".
  for (const Code& code : known_codes) {
    if (contains_word(text, code.text)) return code.error;
  }
  return ServerError::other;
}

Failure to_failure(std::string_view text) {
  const ServerError error = classify(text);
  const std::string shown = util::quoted(text);  // from outside: bounded, and free of control characters
  return {meaning_of(error).code, std::string(explanation(text, error)) + shown.substr(1, shown.size() - 2)};
}

bool is_about_cluster(ServerError error) noexcept {
  return error == ServerError::moved || error == ServerError::ask || error == ServerError::try_again ||
         error == ServerError::cluster_down;
}

bool suggests_other_server(ServerError error) noexcept {
  return error == ServerError::read_only || error == ServerError::master_down;
}

Failure unexpected(std::string_view to_what, const Reply& reply) {
  if (reply.is(Reply::Type::error)) return to_failure(reply.text);
  std::string what(type_name(reply.type));
  if (reply.is(Reply::Type::array)) what += " of " + std::to_string(reply.elements.size());
  return {errc::protocol, "unexpected answer to " + std::string(to_what) + ": " + what};
}

}  // namespace dlock::redis
