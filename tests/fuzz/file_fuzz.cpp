// Names of locks as file names, file names of whoever writes into the directory, and arbitrary bytes in a lock file.
//
// A file name is one component of a path that is no dot file, never longer than promised, different for different
// names, and read back as it was written. A file has a record or none; bytes that are rightly signed by their hash get
// past the checksum, so the fields behind it meet them, too.
#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include "backends/file/file_name.hpp"
#include "backends/file/lock_record.hpp"
#include "tests/fuzz/checks.hpp"

namespace {

using dlock::file::ReadRecord;
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

void check_record(std::string_view content) {
  const auto parsed = dlock::file::parse_record(content);
  const auto* read = std::get_if<ReadRecord>(&parsed);
  if (read == nullptr) return;
  require(read->record.token < std::uint64_t{1} << 63U);
  const std::string name = read->name.value_or("unknown");
  require(!read->name || read->belongs_to(name));
  // What is written about it is read as the same.
  const auto again =
      dlock::file::parse_record(dlock::file::format_block(read->record, name) + dlock::file::format_name_line(name));
  const auto* same = std::get_if<ReadRecord>(&again);
  require(same != nullptr && same->name == name && same->record.token == read->record.token);
  require(same->record.owner == read->record.owner && same->record.pid == read->record.pid);
  require(read->record.holder.starts_with(same->record.holder));  // it may have been cut
}

// The text as the fields of a block, with a checksum that is right, and a name behind it.
std::string signed_block(std::string_view fields, std::string_view tail) {
  std::string block = "dlock lock file, version 1\n" + std::string(fields);
  block += "checksum " + dlock::file::hash_of(block) + "\n";
  block.resize(dlock::file::record_block - 1, ' ');
  return block + "\n" + std::string(tail);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text = dlock::fuzz::as_text(data, size);
  check_record(text);
  const std::size_t tail = text.find("name ");
  check_record(signed_block(text.substr(0, tail), tail == std::string_view::npos ? "" : text.substr(tail)));
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
