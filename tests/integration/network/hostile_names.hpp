// Names that are code, or markup, to some service or to its client's way of sending them.
#pragma once

#include <set>
#include <string>
#include <vector>

namespace dlock::test {

// In the order of their bytes, none twice.
inline std::vector<std::string> hostile_names() {
  std::set<std::string> names;
  // SQL, arrays of SQL, and dlock's own templates of it
  for (const char* const name :
       {"\"", "\"\"", "'", "''", "\"; DROP SCHEMA dlock CASCADE; --", "'; DELETE FROM dlock.lease; --", "a\".\"b", "$1",
        "$2::text", "$$", "/* x */", "-- x", "E'\\''", "U&\"\"", "SELECT", "NULL", "null", "{}", "{a,b}", "{\"a\"}",
        ",", "a,b", "\\", "\\\\", "\\x41", "\\\"", "{lease}", "{now}", "{{us}}", ":x", "?", "x'y",
        // patterns, formats, hash tags, paths
        "%", "%s%n", "_", "*", "[a]", "{a}b", "a/b", "..", "../a", "a:b", "dlock:x", "a.b", " ", "  ", " x ",
        // case, and Unicode
        "lock", "LOCK", "Lock", "\u00e9", "e\u0301", "\u01c5", "\u2019", "\uff02", "\ufeff", "\u200b", "\u6f22\u5b57",
        "\U0001f512"}) {
    names.insert(name);
  }
  for (const char each : {'\'', '"', '\\', '{', '%'}) names.insert(std::string(512, each));
  return {names.begin(), names.end()};
}

}  // namespace dlock::test
