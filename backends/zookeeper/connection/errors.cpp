#include "backends/zookeeper/connection/errors.hpp"

#include <zookeeper/zookeeper.h>

#include <algorithm>
#include <array>

#include "util/names.hpp"

namespace dlock::zookeeper {

namespace {

// Codes that a server sends, and that this library has no name for.
constexpr int unknown_session = -12;
constexpr int request_timeout = -122;
constexpr int quota_exceeded = -125;

struct Code {
  int code;
  Problem problem;
  errc for_caller;
  std::string_view name;
  std::string_view text = {};  // empty: the library's, which is "(not error) ..." for several
};

constexpr std::array known_codes = {
    Code{ZOK, Problem::none, {}, "ZOK"},
    Code{ZNONODE, Problem::no_node, errc::protocol, "ZNONODE"},
    Code{ZNODEEXISTS, Problem::node_exists, errc::protocol, "ZNODEEXISTS"},

    Code{ZCONNECTIONLOSS, Problem::unknown_outcome, errc::ambiguous, "ZCONNECTIONLOSS"},
    Code{ZOPERATIONTIMEOUT, Problem::unknown_outcome, errc::ambiguous, "ZOPERATIONTIMEOUT"},
    Code{ZCLOSING, Problem::unknown_outcome, errc::ambiguous, "ZCLOSING"},
    // A failure at a server or of its answer; how far the request got is unknown.
    Code{ZSYSTEMERROR, Problem::unknown_outcome, errc::ambiguous, "ZSYSTEMERROR"},
    Code{ZRUNTIMEINCONSISTENCY, Problem::unknown_outcome, errc::ambiguous, "ZRUNTIMEINCONSISTENCY"},
    Code{ZDATAINCONSISTENCY, Problem::unknown_outcome, errc::ambiguous, "ZDATAINCONSISTENCY"},
    Code{ZMARSHALLINGERROR, Problem::unknown_outcome, errc::ambiguous, "ZMARSHALLINGERROR"},
    Code{ZSSLCONNECTIONERROR, Problem::unknown_outcome, errc::ambiguous, "ZSSLCONNECTIONERROR"},
    Code{request_timeout, Problem::unknown_outcome, errc::ambiguous, "REQUESTTIMEOUT",
         "the server did not carry out the request in time"},

    Code{ZSESSIONEXPIRED, Problem::session_over, errc::unavailable, "ZSESSIONEXPIRED"},
    Code{ZINVALIDSTATE, Problem::session_over, errc::unavailable, "ZINVALIDSTATE"},
    Code{unknown_session, Problem::session_over, errc::unavailable, "UNKNOWNSESSION",
         "the server does not know the session"},
    Code{ZAUTHFAILED, Problem::session_over, errc::access_denied, "ZAUTHFAILED"},
    Code{ZSESSIONCLOSEDREQUIRESASLAUTH, Problem::session_over, errc::access_denied, "ZSESSIONCLOSEDREQUIRESASLAUTH",
         "the server requires an identity that it accepts (auth= in the URL), or SASL, which dlock does not support"},

    Code{ZTHROTTLEDOP, Problem::not_executed, errc::unavailable, "ZTHROTTLEDOP",
         "the server is overloaded and did not carry out the request"},
    Code{ZSESSIONMOVED, Problem::not_executed, errc::unavailable, "ZSESSIONMOVED"},
    Code{ZNOTREADONLY, Problem::not_executed, errc::unavailable, "ZNOTREADONLY",
         "the server is read-only: it has lost the ensemble"},
    Code{ZNEWCONFIGNOQUORUM, Problem::not_executed, errc::unavailable, "ZNEWCONFIGNOQUORUM",
         "the ensemble is being reconfigured"},
    Code{ZRECONFIGINPROGRESS, Problem::not_executed, errc::unavailable, "ZRECONFIGINPROGRESS",
         "the ensemble is being reconfigured"},
    // Until an operator raises the quota, or nodes are removed.
    Code{quota_exceeded, Problem::not_executed, errc::unavailable, "QUOTAEXCEEDED",
         "the quota of this node or of one above it is used up; raise it (setquota), or remove nodes"},

    Code{ZNOAUTH, Problem::no_rights, errc::access_denied, "ZNOAUTH",
         "no right to do this; auth= in the URL must be what the nodes were created with"},
    Code{ZINVALIDACL, Problem::no_rights, errc::access_denied, "ZINVALIDACL",
         "the server does not accept the requested access rights; if the URL has auth=, check it"},

    // Caused by the request, by an old server, or by another program's nodes.
    Code{ZBADARGUMENTS, Problem::other, errc::invalid_argument, "ZBADARGUMENTS"},
    Code{ZINVALIDCALLBACK, Problem::other, errc::invalid_argument, "ZINVALIDCALLBACK"},
    Code{ZUNIMPLEMENTED, Problem::other, errc::unsupported, "ZUNIMPLEMENTED"},
    Code{ZEPHEMERALONLOCALSESSION, Problem::other, errc::unsupported, "ZEPHEMERALONLOCALSESSION"},
    Code{ZRECONFIGDISABLED, Problem::other, errc::unsupported, "ZRECONFIGDISABLED"},
    Code{ZNOCHILDRENFOREPHEMERALS, Problem::other, errc::protocol, "ZNOCHILDRENFOREPHEMERALS",
         "the parent is an ephemeral node, which has no children; another program uses this path"},
    Code{ZNOTEMPTY, Problem::other, errc::protocol, "ZNOTEMPTY"},
    Code{ZBADVERSION, Problem::other, errc::protocol, "ZBADVERSION"},
    Code{ZNOWATCHER, Problem::other, errc::protocol, "ZNOWATCHER"},
};

// A code of a later server: it refused the request for now. A code of the library's own, greater than ZAPIERROR, says
// nothing about the request. Both end a try, but not a wait.
constexpr Code unknown_refusal{0, Problem::not_executed, errc::unavailable, {}};
constexpr Code unknown_trouble{0, Problem::unknown_outcome, errc::ambiguous, {}};

const Code& find(int code) noexcept {
  const auto* const found =
      std::find_if(known_codes.begin(), known_codes.end(), [&](const Code& known) { return known.code == code; });
  if (found != known_codes.end()) return *found;
  return code < ZAPIERROR ? unknown_refusal : unknown_trouble;
}

}  // namespace

Problem problem_of(int code) noexcept {
  return find(code).problem;
}

Failure failure_of(int code, std::string_view subject) {
  if (code == ZOK) return {};
  const Code& known = find(code);
  std::string text = "ZooKeeper";
  if (!subject.empty() && known.problem != Problem::session_over) {  // what the request was about does not matter then
    const std::string shown = util::quoted(subject);                 // bounded, and free of control characters
    text += ": " + shown.substr(1, shown.size() - 2);
  }
  text += ": " + std::string(known.text.empty() ? zerror(code) : known.text) + " (" +
          (known.name.empty() ? std::to_string(code) : std::string(known.name)) + ")";
  return {known.for_caller, text};
}

}  // namespace dlock::zookeeper
