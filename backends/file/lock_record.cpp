#include "backends/file/lock_record.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <concepts>
#include <limits>
#include <system_error>

#include "backends/file/file_name.hpp"
#include "backends/file/hash.hpp"
#include "util/percent.hpp"

namespace dlock::file {

namespace {

constexpr std::size_t max_holder = 200;  // bytes, encoded
constexpr auto max_token = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());

constexpr std::string_view first_line(LockKind kind) noexcept {
  switch (kind) {
    case LockKind::lock:
      return "dlock lock file, version 1";
    case LockKind::read_write:
      return "dlock read-write lock file, version 1";
    case LockKind::semaphore:
      return "dlock semaphore file, version 1";
    case LockKind::election:
      return "dlock election file, version 1";
  }
  return {};
}

bool plain_in_record(unsigned char c) noexcept {
  return c > ' ' && c != '%' && c != 0x7f;
}

std::string encode_holder(std::string_view holder) {
  std::string text = percent_encode(holder, plain_in_record);
  if (text.size() <= max_holder) return text;
  std::size_t end = max_holder;
  const auto continues = [&](std::size_t at) { return (static_cast<unsigned char>(text[at]) & 0xc0) == 0x80; };
  while (end > 0 && continues(end)) --end;
  for (std::size_t back = 1; back <= 2 && back <= end; ++back) {
    if (text[end - back] == '%') end -= back;
  }
  text.resize(end);
  return text;
}

void add_line(std::string& block, std::string_view key, std::string_view value) {
  block.append(key).append(" ").append(value).append("\n");
}

template <std::integral Number>
void add_line(std::string& block, std::string_view key, Number number) {
  std::array<char, std::numeric_limits<Number>::digits10 + 2> digits;
  const char* const end = std::to_chars(digits.data(), digits.data() + digits.size(), number).ptr;
  add_line(block, key, std::string_view(digits.data(), end));
}

// Takes the text apart line by line.
class Lines {
 public:
  explicit Lines(std::string_view text) : rest_(text) {}

  // The value of the next line if it has that key.
  [[nodiscard]] std::optional<std::string_view> value(std::string_view key) {
    auto line = next();
    if (!line || !line->starts_with(key) || line->size() <= key.size() || (*line)[key.size()] != ' ') {
      return std::nullopt;
    }
    return line->substr(key.size() + 1);
  }
  [[nodiscard]] std::optional<std::string_view> next() {
    const std::size_t end = rest_.find('\n');
    if (end == std::string_view::npos) return std::nullopt;
    const std::string_view line = rest_.substr(0, end);
    rest_.remove_prefix(end + 1);
    return line;
  }
  [[nodiscard]] std::string_view rest() const noexcept { return rest_; }

 private:
  std::string_view rest_;
};

template <class Number>
[[nodiscard]] bool parse_number(const std::optional<std::string_view>& text, Number& number) noexcept {
  if (!text) return false;
  const char* const end = text->data() + text->size();
  const auto [stop, error] = std::from_chars(text->data(), end, number);
  return error == std::errc() && stop == end;
}

bool all_zero(std::string_view content) noexcept {
  return std::all_of(content.begin(), content.end(), [](char c) { return c == '\0'; });
}

// The name behind the block; nullopt when it was not or not wholly written, an error when it is something else.
std::variant<std::optional<std::string>, BadRecord> parse_name(std::string_view tail, const Hash128& expected_hash) {
  // Behind a name there may be a hole, and then more.
  tail = tail.substr(0, tail.find_last_not_of('\0') + 1);
  const bool cut = tail.find('\0') != std::string_view::npos || !tail.ends_with('\n');
  if (cut) return std::nullopt;
  Lines lines(tail);
  const auto encoded = lines.value("name");
  auto name = encoded ? util::percent_decode(*encoded) : std::nullopt;
  if (!name || !lines.rest().empty()) return BadRecord{"the record is not followed by the name of a lock"};
  if (hash128(*name) != expected_hash) return BadRecord{"its record and its name do not match"};
  return name;
}

}  // namespace

bool ReadRecord::belongs_to(std::string_view lock_name) const {
  return name ? *name == lock_name : name_hash == hash128(lock_name);
}

std::string format_block(const LockRecord& record, std::string_view lock_name, LockKind kind) {
  std::string block;
  block.reserve(record_block);
  block.append(first_line(kind)).append("\n");
  add_line(block, "token", record.token);
  add_line(block, "owner", record.owner.to_string());
  add_line(block, "holder", encode_holder(record.holder));
  add_line(block, "pid", record.pid);
  add_line(block, "since", record.since);
  if (kind == LockKind::semaphore) add_line(block, "permits", record.permits);
  add_line(block, "name-hash", to_hex(hash128(lock_name)));
  add_line(block, "checksum", to_hex(hash128(block)));
  block.resize(record_block - 1, ' ');
  block.push_back('\n');
  return block;
}

std::string format_name_line(std::string_view lock_name) {
  std::string line;
  add_line(line, "name", percent_encode(lock_name, plain_in_record));
  return line;
}

RecordContent parse_record(std::string_view content, LockKind kind) {
  if (all_zero(content)) return NoRecord{};
  if (content.size() < record_block) return BadRecord{"it is shorter than a record"};
  const std::string_view block = content.substr(0, record_block);
  Lines lines(block);
  ReadRecord read;
  LockRecord& record = read.record;
  if (lines.next() != first_line(kind)) {
    return BadRecord{"it does not begin with \"" + std::string(first_line(kind)) + "\""};
  }
  const bool token = parse_number(lines.value("token"), record.token);
  const auto owner = OwnerId::parse(lines.value("owner").value_or(""));
  const auto holder = lines.value("holder");
  const bool pid = parse_number(lines.value("pid"), record.pid);
  const bool since = parse_number(lines.value("since"), record.since);
  const bool permits = kind != LockKind::semaphore || parse_number(lines.value("permits"), record.permits);
  const auto name_hash = parse_hash(lines.value("name-hash").value_or(""));
  const auto checked = block.substr(0, block.size() - lines.rest().size());
  if (parse_hash(lines.value("checksum").value_or("")) != hash128(checked)) return BadRecord{"its checksum is wrong"};
  auto holder_text = holder ? util::percent_decode(*holder) : std::nullopt;
  if (!token || record.token > max_token || !owner || !holder_text || !pid || !since || !permits || !name_hash) {
    return BadRecord{"one of its fields has an invalid value"};
  }
  record.owner = *owner;
  record.holder = std::move(*holder_text);
  read.name_hash = *name_hash;
  auto name = parse_name(content.substr(record_block), read.name_hash);
  if (auto* const bad = std::get_if<BadRecord>(&name)) return std::move(*bad);
  read.name = std::move(std::get<0>(name));
  return read;
}

std::string format_value(const OwnerId& owner, std::string_view value) {
  std::string text;
  add_line(text, "owner", owner.to_string());
  add_line(text, "value", percent_encode(value, plain_in_record));
  add_line(text, "checksum", to_hex(hash128(text)));
  return text;
}

std::optional<std::string> parse_value(std::string_view text, const OwnerId& owner) {
  Lines lines(text);
  const auto whose = OwnerId::parse(lines.value("owner").value_or(""));
  const auto value = lines.value("value");
  const auto checked = text.substr(0, text.size() - lines.rest().size());
  const bool whole = parse_hash(lines.value("checksum").value_or("")) == hash128(checked);
  if (!whose || *whose != owner || !value || !whole) return std::nullopt;
  return util::percent_decode(*value);
}

std::int64_t microseconds(std::chrono::system_clock::time_point wall) noexcept {
  return std::chrono::floor<std::chrono::microseconds>(wall.time_since_epoch()).count();
}

std::optional<std::uint64_t> next_token(std::uint64_t stored, std::chrono::system_clock::time_point wall) noexcept {
  if (stored >= max_token) return std::nullopt;
  const std::int64_t clock = microseconds(wall);
  return std::max(stored + 1, clock > 0 ? static_cast<std::uint64_t>(clock) : 0);
}

}  // namespace dlock::file
