// Contract 14: names are UTF-8 of 1..512 bytes without control characters, byte-exact, and never interpreted.
#include <algorithm>
#include <deque>
#include <ranges>
#include <string>
#include <string_view>
#include <vector>

#include "suite/contract.hpp"
#include "tests/support/sanitizers.hpp"

namespace dlock::conformance {

DLOCK_CONFORMANCE_TESTS(names)

namespace {

using namespace std::string_view_literals;

constexpr std::size_t longest = 512;

// All different, though an encoding, a file system, a query language or a person may take some for the same. The last
// lines have accents composed and decomposed, three ways to write A with ring, Turkish i, sharp s, ligatures, digits
// and letters that look like others, characters without width, and other ways to write "/" and ".". Each is used as the
// end of a name.
constexpr std::string_view look_alikes[] = {
    "a", "A", "b", "ab", "aB", "Ab", "AB", "a/b", "a%2Fb", "a%2fb", "a%252Fb", "a\\b", "a//b", "a/b/", "/a/b", "a/./b",
    "a/../b", "a/c/../b", ".", "..", "...", "../a", "../../a", "./a", "/", "//", "a.", "a..", "a ", " a", "a  ", "  a",
    "a b", "a+b", "a%20b", "a%", "a%%", "%", "%00", "%2e%2e", "%a", "-", "--", "-a", "--help", "-rf", "{", "}", "{}",
    "{a}", "{a}b", "a{b}", "{{a}}", "'", "''", "\"", "\"\"", "'; drop table locks; --", "a';--", "$1", "$(a)", "`a`",
    "$a", "a;b", "a|b", "a&b", "a>b", "a<b", "*", "?", "[a]", "a*", "a?", "~", "~a", "#", "a#b", "a:b", "a@b", "a=b",
    "a,b", "a_b", "a-b", "a~b", "!", "a!", "^", "(a)", "con", "CON", "nul", "null", "NULL", "0", "00", "0x0", "1e0",
    "a.lock", "a.lock.lock", "lock", "locks", "a.tmp", "@", "__", "_",
    //
    "\u00e9", "e\u0301", "\u00c9", "E\u0301", "\u212b", "\u00c5", "A\u030a", "\u0130", "i", "I", "\u0131", "\u00df",
    "ss", "SS", "\u1e9e", "\ufb01", "fi", "\u2460", "1", "\uff41", "\u0430", "\u200b", "a\u200b", "\u00a0", "\u3000",
    "\ufeff", "\ufeffa", "\u202ea", "\U0001f512", "\U0001f513", "\U0010ffff", "\u2044", "a\u2044b", "\u2024", "\u2025",
    "\uff0e", "\uff0e\uff0e", "\u65e5\u672c\u8a9e"};

// Letter case, "/", dots, spaces, percent signs and dashes.
constexpr std::size_t most_of_other_kinds = 48;

// Byte by byte, and in order.
void expect_listed(const std::vector<LockInfo>& all, const std::deque<Lease>& leases) {
  for (const Lease& lease : leases) {
    const auto found =
        std::find_if(all.begin(), all.end(), [&](const LockInfo& each) { return each.name == lease.name(); });
    ASSERT_NE(found, all.end()) << lease.name();
    EXPECT_TRUE(found->held) << lease.name();
    EXPECT_EQ(found->token, lease.token()) << lease.name();
  }
  EXPECT_TRUE(
      std::is_sorted(all.begin(), all.end(), [](const LockInfo& a, const LockInfo& b) { return a.name < b.name; }));
}

}  // namespace

TEST_P(Contract, C14_LookAlikesAreDifferentLocks) {
  // A sanitizer takes ten times as long, and kinds of locks do not differ in how names are written: those of one kind.
  const std::size_t count =
      dlock::test::sanitized && kind().kind != LockKind::lock ? most_of_other_kinds : std::size(look_alikes);
  // Where few locks can be held at a time, so many of them, and then each of the others beside them.
  const std::size_t at_once = caps().max_locks == 0 ? count : caps().max_locks - std::size_t{1};
  Client& holder = client();
  Client& other = client();
  const auto take_one = [&](std::size_t number, Client& by) {
    const std::string whole = name() + "/" + std::string(look_alikes[number]);
    auto lease = lock_of(by, whole).try_acquire();
    if (!lease) throw std::runtime_error("\"" + whole + "\" shares a lock with another name");
    EXPECT_EQ(lease->name(), whole);
    return *std::move(lease);
  };
  // Each is still held, and releasing one frees that one alone.
  const auto expect_each_its_own = [&](std::deque<Lease>& leases) {
    for (std::size_t i = 0; i < leases.size(); ++i) {
      Lock& lock = lock_of(other, leases[i].name());
      EXPECT_FALSE(lock.try_acquire().has_value()) << leases[i].name();
      EXPECT_TRUE(leases[i].release());
      EXPECT_TRUE(take(lock).held())
          << leases[i].name();  // no try: another server may hear of the release a moment later
      const bool others_held = i + 1 == leases.size() || leases[i + 1].held();
      EXPECT_TRUE(others_held) << leases[i].name();
    }
  };
  for (std::size_t start = 0; start < count; start += at_once) {
    const std::size_t end = std::min(start + at_once, count);
    std::deque<Lease> leases;
    for (std::size_t i = start; i < end; ++i) leases.push_back(take_one(i, holder));
    for (std::size_t i = end; i < count; ++i) EXPECT_TRUE(take_one(i, holder).release());
    if (caps().can_list) expect_listed(holder.list(kind().kind), leases);
    expect_each_its_own(leases);
  }
}

TEST_P(Contract, C14_NamesThatConsistOfLittleElseAreLocks) {
  // Without the prefix that keeps the other names of this suite apart, so only names that nobody uses for a lock.
  Client& holder = client();
  std::deque<Lease> leases;
  for (const std::string_view bare : {"."sv, ".."sv, "/"sv, "//"sv, "../.."sv, "-"sv, " "sv, "%"sv, "'"sv, "{}"sv}) {
    Lock& lock = lock_of(holder, std::string(bare));
    auto lease = lock.try_acquire();
    ASSERT_TRUE(lease.has_value()) << '"' << bare << '"';
    leases.push_back(std::move(*lease));
  }
  Client& other = client();
  for (Lease& lease : leases) {
    EXPECT_FALSE(lock_of(other, lease.name()).try_acquire().has_value()) << '"' << lease.name() << '"';
    EXPECT_TRUE(lease.release());
  }
}

TEST_P(Contract, C14_EveryLengthUpToTheLongestIsALock) {
  Client& holder = client();
  Client& other = client();
  const std::string start = name() + "/";
  const auto expect_lock = [&](const std::string& padded) {
    const auto lease = lock_of(holder, padded).try_acquire();
    ASSERT_TRUE(lease.has_value()) << padded.size() << " bytes";
    EXPECT_FALSE(lock_of(other, padded).try_acquire().has_value()) << padded.size() << " bytes";
  };
  for (std::size_t length = start.size() + 1; length <= longest; length += length < longest - 20 ? 17 : 1) {
    expect_lock(start + std::string(length - start.size(), 'x'));
  }
  std::string wide = start;
  while (wide.size() + 4 <= longest) wide += "\U0001f512";
  expect_lock(wide);
  EXPECT_TRUE(lock_of(holder, "\u0391").try_acquire().has_value());
  EXPECT_TRUE(lock_of(holder, "~").try_acquire().has_value());
}

// Hazard: names that are too long for an index
TEST_P(Contract, C14_LongNamesThatDifferInTheLastByteAreDifferentLocks) {
  Client& holder = client();
  const std::string start = name() + "/";
  const std::string padding(longest - 1 - start.size(), 'y');
  std::deque<Lease> leases;
  for (const char last : {'a', 'b', 'A', '0', '/', '.', ' '}) {
    auto lease = lock_of(holder, start + padding + last).try_acquire();
    ASSERT_TRUE(lease.has_value()) << "ending in '" << last << "'";
    leases.push_back(std::move(*lease));
  }
  auto shorter = lock_of(holder, start + padding).try_acquire();
  ASSERT_TRUE(shorter.has_value());
  for (Lease& lease : leases) EXPECT_TRUE(lease.release());
}

TEST_P(ClientContract, C14_NamesAreRefusedUnlessTheyAreProperText) {
  Client& asked = client();
  std::string refused(longest + 1, 'z');
  refused +=
      "||\0|a\0|a\0b|\n|a\nb|\r|\t|a\x01|\x1f|\x1b[31m|\x7f|a\x7f"
      "|\xc2\x80|a\xc2\x9f"                                        // U+0080 and U+009F, controls too
      "|\x80|\xbf|a\xff|\xfe"                                      // in no text
      "|\xc0\xaf|\xc1\xbf|\xe0\x80\xaf|\xf0\x80\x80\xaf|\xc0\x80"  // overlong forms of '/' and of NUL
      "|\xed\xa0\x80|\xed\xbf\xbf|\xed\xa0\xbd\xed\xb4\x92"        // surrogates
      "|\xf4\x90\x80\x80|\xf8\x88\x80\x80\x80"                     // beyond U+10FFFF
      "|\xc3|a\xe2\x82|\xf0\x9f\x94|\xe2\x28\xa1"sv;               // cut short
  for (const auto part : std::views::split(refused, '|')) {
    const std::string bad(part.begin(), part.end());
    try {
      (void)lock_of(asked, bad);
      ADD_FAILURE() << "accepted: " << ::testing::PrintToString(bad.substr(0, 40));
    } catch (const Error& e) {
      EXPECT_EQ(e.code(), errc::invalid_argument) << ::testing::PrintToString(bad.substr(0, 40));
    }
  }
}

TEST_P(Contract, C14_InspectTellsWhatIsHeld) {
  DLOCK_APPLIES_IF(caps().can_inspect, "the backend does not answer questions");
  Client& holder = client({.label = "inspected"});
  Client& asking = client();
  for (const std::string_view tail : {"plain"sv, "a/b"sv, "a%2Fb"sv, "caf\u00e9"sv, ".."sv, "{x}"sv, "'\""sv}) {
    const std::string full = name(tail);
    const auto lease = lock_of(holder, full).try_acquire();
    ASSERT_TRUE(lease.has_value());
    const LockInfo info = asking.inspect(full, kind().kind);
    EXPECT_EQ(info.name, full);
    EXPECT_TRUE(info.held);
    EXPECT_EQ(info.token, lease->token());
    EXPECT_EQ(info.holder, holder.holder());
  }
  EXPECT_FALSE(asking.inspect(name("plain"), kind().kind).held);
  EXPECT_FALSE(asking.inspect(name("never"), kind().kind).held);
}

}  // namespace dlock::conformance
