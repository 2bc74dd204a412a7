#include "backends/file/lock_record.hpp"

#include <algorithm>
#include <limits>

#include "backends/file/file_name.hpp"
#include "util/number.hpp"
#include "util/percent.hpp"

namespace dlock::file {

namespace {

constexpr std::size_t max_holder = 200;  // bytes, encoded
constexpr auto max_token = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());

std::string first_line(LockKind kind) {
  return "dlock " + std::string(to_string(kind)) + " file, version 1";
}

bool plain_in_record(unsigned char c) noexcept {
  return c > ' ' && c != '%' && c != 0x7f;
}

std::string encode_holder(std::string_view holder) {
  std::string text = util::percent_encode(holder, plain_in_record);
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

// Takes the text apart line by line.
class Lines {
 public:
  explicit Lines(std::string_view text) : rest_(text) {}

  // The value of the next line if it has that key.
  [[nodiscard]] std::optional<std::string_view> value(std::string_view key) {
    const auto line = next();
    const bool has_key = line && line->starts_with(key) && line->substr(key.size()).starts_with(' ');
    return has_key ? std::optional(line->substr(key.size() + 1)) : std::nullopt;
  }
  [[nodiscard]] std::optional<std::string> text(std::string_view key) {
    const auto encoded = value(key);
    return encoded ? util::percent_decode(*encoded) : std::nullopt;
  }
  // False: the value is no number.
  template <class Number>
  [[nodiscard]] bool number(std::string_view key, Number& into) {
    const auto read = util::parse_number<Number>(value(key).value_or(""));
    if (read) into = *read;
    return read.has_value();
  }
  // Whether the next line is the checksum of what was read before.
  [[nodiscard]] bool checksum_is_right(std::string_view text) {
    const std::string_view checked = text.substr(0, text.size() - rest_.size());
    return value("checksum") == hash_of(checked);
  }
  [[nodiscard]] std::optional<std::string_view> next() {
    const std::size_t end = rest_.find('\n');
    if (end == std::string_view::npos) return std::nullopt;
    const std::string_view line = rest_.substr(0, end);
    rest_.remove_prefix(end + 1);
    return line;
  }
  [[nodiscard]] bool at_end() const noexcept { return rest_.empty(); }

 private:
  std::string_view rest_;
};

// The name behind the block; nullopt when it was not or not wholly written, an error when it is something else.
std::variant<std::optional<std::string>, BadRecord> parse_name(std::string_view tail,
                                                               const std::string& expected_hash) {
  // Behind a name there may be a hole, and then more.
  tail = tail.substr(0, tail.find_last_not_of('\0') + 1);
  const bool cut = tail.find('\0') != std::string_view::npos || !tail.ends_with('\n');
  if (cut) return std::nullopt;
  Lines lines(tail);
  auto name = lines.text("name");
  if (!name || !lines.at_end()) return BadRecord{"the record is not followed by the name of a lock"};
  if (hash_of(*name) != expected_hash) return BadRecord{"its record and its name do not match"};
  return name;
}

}  // namespace

bool ReadRecord::belongs_to(std::string_view lock_name) const {
  return name ? *name == lock_name : name_hash == hash_of(lock_name);
}

std::string format_block(const LockRecord& record, std::string_view lock_name, LockKind kind) {
  std::string block;
  block.reserve(record_block);
  block.append(first_line(kind)).append("\n");
  add_line(block, "token", std::to_string(record.token));
  add_line(block, "owner", record.owner.to_string());
  add_line(block, "holder", encode_holder(record.holder));
  add_line(block, "pid", std::to_string(record.pid));
  add_line(block, "since", std::to_string(record.since));
  if (kind == LockKind::semaphore) add_line(block, "permits", std::to_string(record.permits));
  add_line(block, "name-hash", hash_of(lock_name));
  add_line(block, "checksum", hash_of(block));
  block.resize(record_block - 1, ' ');
  block.push_back('\n');
  return block;
}

std::string format_name_line(std::string_view lock_name) {
  std::string line;
  add_line(line, "name", util::percent_encode(lock_name, plain_in_record));
  return line;
}

RecordContent parse_record(std::string_view content, LockKind kind) {
  if (content.find_first_not_of('\0') == std::string_view::npos) return NoRecord{};
  if (content.size() < record_block) return BadRecord{"it is shorter than a record"};
  const std::string_view block = content.substr(0, record_block);
  Lines lines(block);
  ReadRecord read;
  LockRecord& record = read.record;
  if (lines.next() != first_line(kind)) {
    return BadRecord{"it does not begin with \"" + first_line(kind) + "\""};
  }
  const bool token = lines.number("token", record.token);
  const auto owner = OwnerId::parse(lines.value("owner").value_or(""));
  auto holder = lines.text("holder");
  const bool pid = lines.number("pid", record.pid);
  const bool since = lines.number("since", record.since);
  const bool permits = kind != LockKind::semaphore || lines.number("permits", record.permits);
  read.name_hash = lines.value("name-hash").value_or("");
  if (!lines.checksum_is_right(block)) return BadRecord{"its checksum is wrong"};
  if (!token || record.token > max_token || !owner || !holder || !pid || !since || !permits ||
      !OwnerId::parse(read.name_hash)) {
    return BadRecord{"one of its fields has an invalid value"};
  }
  record.owner = *owner;
  record.holder = std::move(*holder);
  auto name = parse_name(content.substr(record_block), read.name_hash);
  if (auto* const bad = std::get_if<BadRecord>(&name)) return std::move(*bad);
  read.name = std::move(std::get<0>(name));
  return read;
}

std::string format_value(const OwnerId& owner, std::string_view value) {
  std::string text;
  add_line(text, "owner", owner.to_string());
  add_line(text, "value", util::percent_encode(value, plain_in_record));
  add_line(text, "checksum", hash_of(text));
  return text;
}

std::optional<std::string> parse_value(std::string_view text, const OwnerId& owner) {
  Lines lines(text);
  const auto whose = OwnerId::parse(lines.value("owner").value_or(""));
  auto value = lines.text("value");
  if (!lines.checksum_is_right(text) || whose != owner || !value) return std::nullopt;
  return value;
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
