#include "cli/secret_arguments.hpp"

#include <algorithm>
#include <cstddef>
#include <exception>
#include <string>
#include <string_view>

#include <dlock/spi/url.hpp>

namespace dlock::cli {

namespace {

std::string shown(std::string_view url, std::size_t colon) {
  try {
    return Url::parse(url).redacted();
  } catch (const std::exception&) {
    return std::string(url.substr(0, colon)) + "://***";
  }
}

void hide(char* word) {
  const std::size_t length = std::string_view(word).size();
  char* const start = word + start_of_url(word);
  const std::string_view url = start;
  const std::size_t colon = url.find("://");
  if (colon == std::string_view::npos) return;
  const std::string text = shown(url, colon);
  if (text == url) return;
  // The rest becomes empty words, which ps shows as blanks.
  char* const end = std::copy_n(text.data(), std::min(text.size(), url.size()), start);
  std::fill(end, word + length, '\0');
}

}  // namespace

std::size_t start_of_url(std::string_view word) noexcept {
  const std::size_t equals = word.find('=');
  return word.starts_with("--") && equals < word.find("://") ? equals + 1 : 0;
}

void hide_secrets(int count, char** words) noexcept {
  // "complete -- WORD...": the words that a shell wants completed are all dlock's own.
  const bool completes = count > 1 && std::string_view(words[1]) == "complete";
  for (int i = 1; i < count && (completes || std::string_view(words[i]) != "--"); ++i) {
    try {
      hide(words[i]);
    } catch (const std::exception&) {  // out of memory: better no word at all
      std::fill_n(words[i], std::string_view(words[i]).size(), '\0');
    }
  }
}

}  // namespace dlock::cli
