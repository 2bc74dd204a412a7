// Names of lock files, and the records in them.
#include "backends/file/lock_record.hpp"

#include <gtest/gtest.h>

#include <limits>
#include <utility>
#include <vector>

#include "backends/file/file_name.hpp"

namespace dlock::file {
namespace {

// Programs in other languages find our locks by these names: they must never change.
TEST(FileName, KnownNames_KeepTheirForms) {
  const std::vector<std::pair<std::string, std::string>> golden = {
      {"orders-42", "orders-42.lock"},
      {"Orders_42", "Orders_42.lock"},
      {"orders/42", "orders%2F42.lock"},
      {"a.b", "a.b.lock"},
      {".", "%2E.lock"},
      {"..", "%2E..lock"},
      {"../../etc/passwd", "%2E.%2F..%2Fetc%2Fpasswd.lock"},
      {".hidden", "%2Ehidden.lock"},
      {"a b", "a%20b.lock"},
      {"100%", "100%25.lock"},
      {"a%2Fb", "a%252Fb.lock"},
      {"~", "%7E.lock"},
      {"a.lock", "a.lock.lock"},
      {"-rf", "-rf.lock"},
      {"{tag}", "%7Btag%7D.lock"},
      {"$(reboot);'\"*?", "%24%28reboot%29%3B%27%22%2A%3F.lock"},
      {"\xc3\xa4", "%C3%A4.lock"},
      {"\xe2\x82\xac", "%E2%82%AC.lock"},
      {std::string(200, 'x'), std::string(200, 'x') + ".lock"},
      {std::string(201, 'x'), std::string(160, 'x') + "~bc63291ed89ef3e1183d5774d5ed1626.lock"},
  };
  std::string slashes;
  for (int i = 0; i < 53; ++i) slashes += "%2F";
  EXPECT_EQ(encode_file_name(std::string(512, '/')), slashes + "~abb3baab34dc3839135f6d8b5a835b7e.lock");
  for (const auto& [name, file] : golden) {
    EXPECT_EQ(encode_file_name(name), file) << name;
  }
}

TEST(FileName, LongName_KeepsEscapesWhole) {
  for (std::size_t plain = 150; plain <= 165; ++plain) {
    const std::string name = std::string(plain, 'x') + std::string(100, '/');
    const std::string file = encode_file_name(name);
    EXPECT_TRUE(is_shortened(file)) << file;
    EXPECT_FALSE(decode_file_name(file).has_value());
    EXPECT_LE(file.size(), max_file_name);
    const std::string stem = file.substr(0, file.find('~'));
    EXPECT_TRUE(decode_file_name(stem + ".lock").has_value()) << "cut inside an escape: " << stem;
    EXPECT_LE(stem.size(), 160U);
    EXPECT_GT(stem.size(), 157U);
  }
}

TEST(FileName, ForeignForm_IsRefused) {
  for (const std::string file : {".lock", "lock", "a", "a.lock~", "a b.lock", "%2f.lock", "%41.lock", "a%.lock",
                                 "a%2.lock", "a%zz.lock", ".a.lock", "~.lock", "a~b.lock", "..", "."}) {
    EXPECT_FALSE(decode_file_name(file).has_value()) << file;
    EXPECT_FALSE(is_shortened(file)) << file;
  }
  const std::string digits(32, 'a');
  EXPECT_TRUE(is_shortened(std::string(160, 'x') + "~" + digits + ".lock"));
  EXPECT_FALSE(is_shortened(std::string(100, 'x') + "~" + digits + ".lock"));
  EXPECT_FALSE(is_shortened(std::string(160, 'x') + "~" + std::string(32, 'A') + ".lock"));
  EXPECT_FALSE(is_shortened(std::string(161, 'x') + "~" + digits + ".lock"));
}

// --- Records ---

const LockRecord kRecord{.token = 1704067200000000,
                         .owner = OwnerId(0x0123456789abcdef, 0xfedcba9876543210),
                         .holder = "host:42:nightly report",
                         .pid = 42,
                         .since = 1704067200000000};

std::string whole(const std::string& name = "orders/42") {
  return format_block(kRecord, name) + format_name_line(name);
}

TEST(LockRecord, KnownRecord_KeepsItsForm) {
  const std::string text =
      "dlock lock file, version 1\n"
      "token 1704067200000000\n"
      "owner 0123456789abcdeffedcba9876543210\n"
      "holder host:42:nightly%20report\n"
      "pid 42\n"
      "since 1704067200000000\n"
      "name-hash 9be392d0ab6cd3114f998527e49e6e96\n"
      "checksum 8cc1599a431eac05e549e540a4e13a7f\n";
  const std::string block = format_block(kRecord, "orders/42");
  EXPECT_EQ(block.size(), record_block);
  EXPECT_EQ(block, text + std::string(record_block - 1 - text.size(), ' ') + "\n");
  EXPECT_EQ(format_name_line("orders/42 \xc3\xa4"), "name orders/42%20\xc3\xa4\n");
}

TEST(LockRecord, Record_IsReadBackAsItsKindOnly) {
  const LockKind all[] = {LockKind::lock, LockKind::read_write, LockKind::semaphore, LockKind::election};
  LockRecord record = kRecord;
  record.permits = 7;
  for (const LockKind kind : all) {
    const std::string text = format_block(record, "orders/42", kind) + format_name_line("orders/42");
    EXPECT_TRUE(text.starts_with("dlock " + std::string(to_string(kind)) + " file, version 1\ntoken ")) << text;
    EXPECT_EQ(text.find("since 1704067200000000\npermits 7\nname-hash ") != std::string::npos,
              kind == LockKind::semaphore);
    for (const LockKind asked : all) {
      const auto content = parse_record(text, asked);
      if (asked != kind) {
        EXPECT_TRUE(std::get<BadRecord>(content).reason.starts_with("it does not begin with \"dlock "));
        continue;
      }
      const auto& read = std::get<ReadRecord>(content);
      EXPECT_EQ(read.record.token, kRecord.token);
      EXPECT_EQ(read.record.owner, kRecord.owner);
      EXPECT_EQ(read.record.holder, kRecord.holder);
      EXPECT_EQ(read.record.pid, kRecord.pid);
      EXPECT_EQ(read.record.since, kRecord.since);
      EXPECT_EQ(read.record.permits, kind == LockKind::semaphore ? 7U : 0U);
      EXPECT_EQ(read.name, "orders/42");
      EXPECT_TRUE(read.belongs_to("orders/42"));
      EXPECT_FALSE(read.belongs_to("orders/43"));
    }
  }
}

TEST(LockRecord, Hole_NameIsStillRead) {
  const auto read = std::get<ReadRecord>(parse_record(whole() + std::string(100, '\0')));
  EXPECT_EQ(read.name, "orders/42");
}

TEST(LockRecord, Value_BelongsToItsOwner) {
  const OwnerId owner(1, 2);
  for (const std::string& value :
       {std::string("10.0.0.7:80"), std::string(), std::string("a b\n%"), std::string(max_value, '\n')}) {
    const std::string text = format_value(owner, value);
    EXPECT_LE(text.size(), max_value_text);
    EXPECT_EQ(parse_value(text, owner), value);
    EXPECT_EQ(parse_value(text + "what a longer one left", owner), value);
    EXPECT_FALSE(parse_value(text, OwnerId(1, 3)).has_value());
    for (std::size_t size = 0; size < text.size(); size += 7) {
      EXPECT_FALSE(parse_value(text.substr(0, size), owner).has_value()) << size;
    }
  }
  EXPECT_EQ(format_value(owner, std::string(max_value, '\n')).size(), max_value_text);
  std::string changed = format_value(owner, "value");
  changed[changed.find("value value") + 6] = 'V';
  EXPECT_FALSE(parse_value(changed, owner).has_value());
}

TEST(LockRecord, LongestNameAndHolder_Fit) {
  const std::string name(512, '%');
  LockRecord record = kRecord;
  record.token = std::numeric_limits<std::int64_t>::max();
  record.pid = std::numeric_limits<std::int32_t>::max();
  record.since = std::numeric_limits<std::int64_t>::min();
  record.permits = std::numeric_limits<std::uint32_t>::max();
  record.holder = std::string(253, 'h') + ":1:" + std::string(64, ' ');
  const std::string text = format_block(record, name) + format_name_line(name);
  EXPECT_EQ(text.size(), max_record);
  const auto read = std::get<ReadRecord>(parse_record(text));
  EXPECT_EQ(read.name, name);
  EXPECT_EQ(read.record.holder, std::string(200, 'h'));
}

TEST(LockRecord, LongHolder_IsCutBetweenCharacters) {
  for (std::size_t before = 190; before <= 200; ++before) {
    for (const std::string character : {"\xe2\x82\xac", " "}) {
      LockRecord record = kRecord;
      record.holder = std::string(before, 'h');
      for (int i = 0; i < 8; ++i) record.holder += character;
      const auto read = std::get<ReadRecord>(parse_record(format_block(record, "n") + format_name_line("n")));
      const std::string& holder = read.record.holder;
      EXPECT_EQ(holder, record.holder.substr(0, holder.size()));
      EXPECT_EQ((holder.size() - before) % character.size(), 0U) << "a character was cut in two";
    }
  }
}

TEST(LockRecord, EmptyOrZeroFile_HasNoRecord) {
  for (const std::size_t size : {std::size_t{0}, std::size_t{1}, max_record}) {
    EXPECT_TRUE(std::holds_alternative<NoRecord>(parse_record(std::string(size, '\0')))) << size;
  }
}

TEST(LockRecord, ChangedByte_IsRefused) {
  const std::string good = whole();
  const std::size_t end = good.find('\n', good.find("checksum"));
  for (std::size_t i = 0; i <= end; ++i) {
    for (const int flip : {0x01, 0x20, 0x80}) {
      std::string bad = good;
      bad[i] = static_cast<char>(bad[i] ^ flip);
      EXPECT_TRUE(std::holds_alternative<BadRecord>(parse_record(bad))) << "byte " << i;
    }
  }
}

TEST(LockRecord, WrongLength_IsRefused) {
  const std::string good = whole();
  for (std::size_t size = 1; size < record_block; ++size) {
    EXPECT_TRUE(std::holds_alternative<BadRecord>(parse_record(good.substr(0, size)))) << size;
  }
  const std::string block = format_block(kRecord, "a");
  for (const std::string& text :
       {good + "more\n", block + format_name_line("b"), block + "hello\n", std::string("a stranger's file\n")}) {
    EXPECT_TRUE(std::holds_alternative<BadRecord>(parse_record(text))) << text;
  }
}

TEST(LockRecord, InvalidField_IsRefusedDespiteTheChecksum) {
  const std::string good = format_block(kRecord, "a");
  const auto with = [&](const std::string& key, const std::string& value) {
    std::string block = good.substr(0, good.find("checksum"));
    const std::size_t line = block.find("\n" + key + " ") + 1;
    block.replace(line, block.find('\n', line) - line, key + " " + value);
    block += "checksum " + hash_of(block) + "\n";
    block.resize(record_block - 1, ' ');
    return parse_record(block + "\n" + format_name_line("a"));
  };
  ASSERT_TRUE(std::holds_alternative<ReadRecord>(with("token", "7")));
  const std::pair<const char*, const char*> wrong[] = {
      {"token", ""},       {"token", "x"},  {"token", "7 "}, {"token", "9223372036854775808"},
      {"owner", "01"},     {"holder", "%"}, {"pid", "many"}, {"since", "ever"},
      {"name-hash", "9b"},
  };
  for (const auto& [key, value] : wrong) {
    EXPECT_EQ(std::get<BadRecord>(with(key, value)).reason, "one of its fields has an invalid value") << key << value;
  }
}

TEST(LockRecord, PartialName_IsRecognizedByItsHash) {
  const std::string name = "orders/42";
  const std::string block = format_block(kRecord, name);
  const std::string line = format_name_line(name);
  for (const std::string& tail :
       {std::string(), std::string(line.size(), '\0'), line.substr(0, 5), line.substr(0, 5) + std::string(9, '\0')}) {
    const auto read = std::get<ReadRecord>(parse_record(block + tail));
    EXPECT_FALSE(read.name.has_value());
    EXPECT_TRUE(read.belongs_to(name));
    EXPECT_FALSE(read.belongs_to("orders/43"));
  }
}

TEST(LockRecord, NextToken_IsTheClockOrOneMoreBelow2To63) {
  using std::chrono::microseconds;
  const auto at = [](std::int64_t us) { return std::chrono::system_clock::time_point(microseconds(us)); };
  EXPECT_EQ(next_token(0, at(1000)), 1000U);
  EXPECT_EQ(next_token(999, at(1000)), 1000U);
  EXPECT_EQ(next_token(1000, at(1000)), 1001U);
  EXPECT_EQ(next_token(5000, at(1000)), 5001U);
  EXPECT_EQ(next_token(0, at(0)), 1U);
  EXPECT_EQ(next_token(7, at(-1000)), 8U);
  constexpr auto limit = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
  const std::chrono::system_clock::time_point wall(std::chrono::hours(1));
  EXPECT_EQ(next_token(limit - 1, wall), limit);
  EXPECT_FALSE(next_token(limit, wall).has_value());
}

}  // namespace
}  // namespace dlock::file
