#include "backends/postgres/sql/connect_failure.hpp"

#include <algorithm>
#include <cstddef>

#include "backends/postgres/sql/sqlstate.hpp"

namespace dlock::postgres {

namespace {

// A server may send a hundred megabytes.
constexpr std::size_t longest_text = 2000;

bool is_sqlstate(std::string_view text) {
  return text.size() == 5 &&
         std::all_of(text.begin(), text.end(), [](char c) { return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z'); });
}

// "FATAL:  28P01: password authentication failed": the last one, for libpq may have tried with TLS and without.
std::string_view find_sqlstate(std::string_view text) {
  std::string_view found;
  constexpr std::string_view before = ":  ";
  for (auto at = text.find(before); at != std::string_view::npos; at = text.find(before, at + 1)) {
    const std::string_view code = text.substr(at + before.size(), 5);
    if (is_sqlstate(code) && text.substr(at + before.size() + 5).starts_with(": ")) found = code;
  }
  return found;
}

std::string_view trimmed(std::string_view line) {
  const auto from = line.find_first_not_of(" \t\r");
  if (from == std::string_view::npos) return {};
  return line.substr(from, line.find_last_not_of(" \t\r") - from + 1);
}

// "LOCATION:  ProcSleep, proc.c:1", in any language: a line of the server's source.
bool is_location(std::string_view line) {
  const auto number = line.find_last_not_of("0123456789");
  return number != std::string_view::npos && number + 1 < line.size() && line.substr(0, number + 1).ends_with(".c:");
}

// The client library indents its guesses.
bool is_noise(std::string_view line) {
  return trimmed(line).empty() || line.front() == '\t' || is_location(trimmed(line));
}

// Records of TLS, each with its type and length in front. The types and lengths are not encrypted.
constexpr std::size_t record_header = 5;
constexpr char alert_record = 0x15;
constexpr char application_record = 0x17;
// TLS 1.3 encrypts the type: two bytes of alert, one for the type, 16 of the cipher. No message of the server is as
// short.
constexpr std::size_t longest_hidden_alert = 19;

bool is_tls(std::string_view records) {
  constexpr char first_type = 0x14;  // change_cipher_spec; alert, handshake and application data follow
  return records.size() >= record_header && records[0] >= first_type && records[0] <= application_record &&
         records[1] == 3;
}

// A server that closes the connection sends one, too.
bool has_alert(std::string_view records) {
  while (is_tls(records)) {
    const auto byte = [&](std::size_t at) { return static_cast<unsigned char>(records[at]); };
    const std::size_t length = std::size_t{byte(3)} << 8U | byte(4);
    if (records[0] == alert_record) return true;
    if (records[0] == application_record && length <= longest_hidden_alert) return true;
    records.remove_prefix(std::min(records.size(), record_header + length));
  }
  return false;
}

// A permanent refusal, no temporary problem.
bool is_refusing_alert(std::string_view records) {
  constexpr char fatal = 2;
  constexpr char internal_error = 80;
  return is_tls(records) && records[0] == alert_record && records.size() > record_header + 1 &&
         records[record_header] == fatal && records[record_header + 1] != internal_error;
}

// Another attempt would end in the same way. If the server has answered and has not closed the connection, libpq gave
// up: because of a certificate, a way to authenticate, or because there is no TLS.
bool is_about_trust(const LoginState& state) {
  if (state.needs_password) return true;
  if (state.unread.empty()) return false;
  switch (state.stage) {
    case LoginState::Stage::connecting:
      return false;
    case LoginState::Stage::offering_tls:
      // It has no TLS; or it has, and libpq cannot use our files.
      return state.unread.front() == 'N' || state.unread.front() == 'S';
    case LoginState::Stage::tls_handshake:
      if (state.unread.front() == alert_record) return is_refusing_alert(state.unread);
      return !state.hung_up && is_tls(state.unread);
    case LoginState::Stage::login:
      if (state.hung_up) return false;
      return state.encrypted ? is_tls(state.unread) && !has_alert(state.unread)
                             : state.unread.front() == 'R';  // AuthenticationRequest
  }
  return false;
}

errc code_of(std::string_view sqlstate, const LoginState& state) {
  if (sqlstate.empty()) return is_about_trust(state) ? errc::access_denied : errc::unavailable;
  const Meaning meaning = meaning_of(sqlstate);
  return meaning.remedy == Remedy::final ? meaning.code : errc::unavailable;
}

}  // namespace

std::string in_one_line(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const auto end = std::min(text.find('\n'), text.size());
    const std::string_view whole = text.substr(0, end);
    const std::string_view line = trimmed(whole);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (is_noise(whole)) continue;
    if (!out.empty()) out += "; ";
    if (out.size() + line.size() > longest_text) {
      out += line.substr(0, longest_text - std::min(out.size(), longest_text));
      return out + "...";
    }
    out += line;
  }
  return out;
}

// If a failure comes from several servers, only its text has the SQLSTATE.
bool is_about_a_full_server(const Failure& why) noexcept {
  return why.code == errc::unavailable && why.detail.find("53300: ") != std::string::npos;
}

Failure connect_failure(const std::string& endpoint, std::string_view text, const LoginState& state) {
  const std::string_view sqlstate = find_sqlstate(text);
  std::string words = in_one_line(text);
  if (words.empty()) words = "no connection";
  return {code_of(sqlstate, state), endpoint + ": " + words};
}

}  // namespace dlock::postgres
