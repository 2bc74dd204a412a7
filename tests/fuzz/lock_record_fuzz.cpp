// Arbitrary bytes in a lock file: a record or none, never a crash. Bytes that are rightly signed by their hash get past
// the checksum, so the fields behind it meet them, too.
#include <string>
#include <string_view>
#include <variant>

#include "backends/file/file_name.hpp"
#include "backends/file/lock_record.hpp"
#include "tests/fuzz/checks.hpp"

namespace {

using dlock::file::ReadRecord;
using dlock::fuzz::require;

void check(std::string_view content) {
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
  check(text);
  const std::size_t tail = text.find("name ");
  const std::string_view fields = text.substr(0, tail);
  check(signed_block(fields, tail == std::string_view::npos ? std::string_view() : text.substr(tail)));
  return 0;
}
