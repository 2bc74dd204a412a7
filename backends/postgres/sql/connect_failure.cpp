#include "backends/postgres/sql/connect_failure.hpp"

#include <algorithm>
#include <array>

#include "backends/postgres/sql/sqlstate.hpp"

namespace dlock::postgres {

namespace {

// More than that is no use; a server may send a hundred megabytes of it.
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

// Where in the server's source, and guesses.
bool is_noise(std::string_view line) {
  return line.empty() || line.starts_with("LOCATION:") || line.starts_with("This probably means") ||
         line.starts_with("before or while processing");
}

bool mentions(std::string_view text, std::string_view word) {
  return text.find(word) != std::string_view::npos;
}

// The client library's own complaints have no SQLSTATE.
bool is_about_trust(std::string_view text) {
  constexpr std::array phrases = {"no password supplied", "certificate", "does not support SSL",
                                  "channel binding",      "private key", "authentication method"};
  return std::any_of(phrases.begin(), phrases.end(), [&](const char* phrase) { return mentions(text, phrase); });
}

errc code_of(std::string_view sqlstate, std::string_view text) {
  if (sqlstate.empty()) return is_about_trust(text) ? errc::access_denied : errc::unavailable;
  const Meaning meaning = meaning_of(sqlstate);
  return meaning.remedy == Remedy::final ? meaning.code : errc::unavailable;
}

}  // namespace

std::string in_one_line(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const auto end = std::min(text.find('\n'), text.size());
    const std::string_view line = trimmed(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
    if (is_noise(line)) continue;
    if (!out.empty()) out += "; ";
    if (out.size() + line.size() > longest_text) {
      out += line.substr(0, longest_text - std::min(out.size(), longest_text));
      return out + "...";
    }
    out += line;
  }
  return out;
}

// Where a failure comes from several servers, only its text has the SQLSTATE.
bool is_about_a_full_server(const Failure& why) noexcept {
  return why.code == errc::unavailable && mentions(why.detail, "53300: ");
}

Failure connect_failure(const std::string& endpoint, std::string_view text) {
  const std::string_view sqlstate = find_sqlstate(text);
  std::string words = in_one_line(text);
  if (words.empty()) words = "no connection";
  return {code_of(sqlstate, text), endpoint + ": " + words};
}

}  // namespace dlock::postgres
