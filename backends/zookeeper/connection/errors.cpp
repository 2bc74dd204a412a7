#include "backends/zookeeper/connection/errors.hpp"

#include <zookeeper/zookeeper.h>

#include <algorithm>
#include <array>

#include "util/names.hpp"

namespace dlock::zookeeper {

namespace {

struct Code {
  int code;
  Problem problem;
  errc for_caller;
  std::string_view name;
};

constexpr std::array known_codes = {
    Code{ZOK, Problem::none, {}, "ZOK"},
    Code{ZNONODE, Problem::no_node, errc::protocol, "ZNONODE"},
    Code{ZNODEEXISTS, Problem::node_exists, errc::protocol, "ZNODEEXISTS"},

    Code{ZCONNECTIONLOSS, Problem::unknown_outcome, errc::ambiguous, "ZCONNECTIONLOSS"},
    Code{ZOPERATIONTIMEOUT, Problem::unknown_outcome, errc::ambiguous, "ZOPERATIONTIMEOUT"},
    Code{ZCLOSING, Problem::unknown_outcome, errc::ambiguous, "ZCLOSING"},
    // Something went wrong on the way of an answer or at a server; how far the request had got is unknown.
    Code{ZSYSTEMERROR, Problem::unknown_outcome, errc::ambiguous, "ZSYSTEMERROR"},
    Code{ZRUNTIMEINCONSISTENCY, Problem::unknown_outcome, errc::ambiguous, "ZRUNTIMEINCONSISTENCY"},
    Code{ZDATAINCONSISTENCY, Problem::unknown_outcome, errc::ambiguous, "ZDATAINCONSISTENCY"},
    Code{ZMARSHALLINGERROR, Problem::unknown_outcome, errc::ambiguous, "ZMARSHALLINGERROR"},

    Code{ZSESSIONEXPIRED, Problem::session_over, errc::unavailable, "ZSESSIONEXPIRED"},
    Code{ZINVALIDSTATE, Problem::session_over, errc::unavailable, "ZINVALIDSTATE"},
    Code{ZAUTHFAILED, Problem::session_over, errc::access_denied, "ZAUTHFAILED"},
    Code{ZSESSIONCLOSEDREQUIRESASLAUTH, Problem::session_over, errc::access_denied, "ZSESSIONCLOSEDREQUIRESASLAUTH"},

    Code{ZTHROTTLEDOP, Problem::not_executed, errc::unavailable, "ZTHROTTLEDOP"},
    Code{ZSESSIONMOVED, Problem::not_executed, errc::unavailable, "ZSESSIONMOVED"},
    Code{ZNOTREADONLY, Problem::not_executed, errc::unavailable, "ZNOTREADONLY"},

    Code{ZNOAUTH, Problem::no_rights, errc::access_denied, "ZNOAUTH"},
    Code{ZINVALIDACL, Problem::no_rights, errc::access_denied, "ZINVALIDACL"},

    Code{ZBADARGUMENTS, Problem::other, errc::invalid_argument, "ZBADARGUMENTS"},
    Code{ZUNIMPLEMENTED, Problem::other, errc::unsupported, "ZUNIMPLEMENTED"},
    Code{ZEPHEMERALONLOCALSESSION, Problem::other, errc::unsupported, "ZEPHEMERALONLOCALSESSION"},
    Code{ZNOCHILDRENFOREPHEMERALS, Problem::other, errc::protocol, "ZNOCHILDRENFOREPHEMERALS"},
    Code{ZNOTEMPTY, Problem::other, errc::protocol, "ZNOTEMPTY"},
};

const Code* find(int code) noexcept {
  const auto* const found =
      std::find_if(known_codes.begin(), known_codes.end(), [&](const Code& known) { return known.code == code; });
  return found == known_codes.end() ? nullptr : found;
}

// The library has one text, "(not error) ...", for several of these.
std::string_view explanation(int code) noexcept {
  switch (code) {
    case ZINVALIDACL:
      return "the server does not accept the requested access rights; if the URL has auth=, check it";
    case ZNOAUTH:
      return "no right to do this; auth= in the URL must be what the nodes were created with";
    case ZNOTREADONLY:
      return "the server is read-only: it has lost the ensemble";
    case ZNOCHILDRENFOREPHEMERALS:
      return "the parent is an ephemeral node, which has no children; another program uses this path";
    case ZSESSIONCLOSEDREQUIRESASLAUTH:
      return "the server requires SASL, which dlock does not support";
    case ZTHROTTLEDOP:
      return "the server is overloaded and did not carry out the request";
    default:
      return zerror(code);
  }
}

}  // namespace

Problem problem_of(int code) noexcept {
  const Code* const known = find(code);
  // A code unknown to us is a server's refusal of something that will not change.
  return known == nullptr ? Problem::other : known->problem;
}

Failure failure_of(int code, std::string_view subject) {
  if (code == ZOK) return {};
  const Code* const known = find(code);
  std::string text = "ZooKeeper";
  if (!subject.empty()) {
    const std::string shown = util::quoted(subject);  // bounded, and free of control characters
    text += ": " + shown.substr(1, shown.size() - 2);
  }
  text += ": " + std::string(explanation(code)) + " (" +
          (known == nullptr ? std::to_string(code) : std::string(known->name)) + ")";
  return {known == nullptr ? errc::protocol : known->for_caller, text};
}

}  // namespace dlock::zookeeper
