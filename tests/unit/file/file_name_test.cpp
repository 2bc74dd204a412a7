#include "backends/file/file_name.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

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

}  // namespace
}  // namespace dlock::file
