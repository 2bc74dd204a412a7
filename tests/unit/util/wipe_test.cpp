#include "util/wipe.hpp"

#include <gtest/gtest.h>

#include <string>

namespace dlock::util {
namespace {

TEST(Wipe, OverwritesAllOfTheTextsMemory) {
  for (const std::size_t length : {7U, 15U, 16U, 1000U}) {  // short ones are stored in the string itself
    std::string text(length, 's');
    text.resize(length / 2);
    const char* const memory = text.data();
    wipe(text);
    EXPECT_TRUE(text.empty());
    ASSERT_EQ(text.data(), memory) << "still the text's own";
    EXPECT_EQ(std::string(memory, length), std::string(length, '\0'));
  }
}

}  // namespace
}  // namespace dlock::util
