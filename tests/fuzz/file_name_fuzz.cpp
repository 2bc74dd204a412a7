// Names of locks as file names, and file names of whoever writes into the directory: one component of a path that is no
// dot file, never longer than promised, different for different names, and read back as it was written.
#include <optional>
#include <string>
#include <string_view>

#include "backends/file/file_name.hpp"
#include "tests/fuzz/checks.hpp"

namespace {

using dlock::fuzz::require;

void check_encoding(std::string_view name) {
  const std::string file = dlock::file::encode_file_name(name);
  require(file.size() <= dlock::file::max_file_name && file.ends_with(".lock"));
  require(file.front() != '.');
  for (const char c : file) require(c > ' ' && c < 0x7f && c != '/');
  const auto decoded = dlock::file::decode_file_name(file);
  require(decoded.has_value() != dlock::file::is_shortened(file));
  if (decoded) require(*decoded == name);
}

void check_decoding(std::string_view file) {
  const auto name = dlock::file::decode_file_name(file);
  if (name) require(dlock::file::encode_file_name(*name) == file);
  require(!name || !dlock::file::is_shortened(file));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text = dlock::fuzz::as_text(data, size);
  check_decoding(text);
  std::string_view second = text;
  const std::string_view first = dlock::fuzz::take_line(second);
  if (!first.empty()) check_encoding(first);
  if (second.empty()) return 0;
  check_encoding(second);
  const bool same = dlock::file::encode_file_name(first) == dlock::file::encode_file_name(second);
  require(same == (first == second));
  return 0;
}
