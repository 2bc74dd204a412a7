// Arbitrary command lines of dlock: understood, answered or refused, and no refusal shows the password that is in them.
// One word a line; "!" stands for a URL with a password.
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "cli/arguments.hpp"
#include "tests/fuzz/checks.hpp"

namespace {

using dlock::fuzz::require;

constexpr std::string_view part_of_secret = "S3cr3t";
constexpr std::string_view url = "redis://me:S3cr3t%2FW0rd@db1:6379/0?lease=5s";

std::string with_urls(std::string_view word) {
  std::string out;
  for (const char c : word) out += c == '!' ? std::string(url) : std::string(1, c);
  return out;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::string_view text = dlock::fuzz::as_text(data, size);
  if (text.find('\0') != std::string_view::npos || text.find(part_of_secret) != std::string_view::npos) return 0;
  std::vector<std::string> words;
  while (!text.empty()) words.push_back(with_urls(dlock::fuzz::take_line(text)));
  try {
    const auto parsed = dlock::cli::parse_arguments(words);
    if (const auto* answer = std::get_if<dlock::cli::Answer>(&parsed)) {
      require(answer->text.find(part_of_secret) == std::string::npos);
    } else if (std::get<dlock::cli::Arguments>(parsed).verb == dlock::cli::Verb::run) {
      require(!std::get<dlock::cli::Arguments>(parsed).command.empty());
    }
  } catch (const dlock::cli::UsageError& error) {
    require(std::string_view(error.what()).find(part_of_secret) == std::string_view::npos);
  }
  return 0;
}
