#include "cli/secret_arguments.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace dlock::cli {
namespace {

// What the words are afterwards, zero bytes and all.
std::vector<std::string> hidden(std::vector<std::string> words) {
  words.insert(words.begin(), "dlock");
  std::vector<char*> pointers;
  for (std::string& word : words) pointers.push_back(word.data());
  hide_secrets(static_cast<int>(pointers.size()), pointers.data());
  words.erase(words.begin());
  return words;
}

// The text as it stands in the place of a longer one.
std::string in_place_of(const std::string& longer, std::string text) {
  text.resize(longer.size(), '\0');
  return text;
}

TEST(HiddenWords, APasswordIsOverwrittenToItsLastByte) {
  const std::string url = "redis://me:hunter2@db1/0";
  const auto words = hidden({"run", "--url", url, "job", "--", "cmd"});
  EXPECT_EQ(words,
            (std::vector<std::string>{"run", "--url", in_place_of(url, "redis://me:***@db1/0"), "job", "--", "cmd"}));
}

TEST(HiddenWords, AnOptionKeepsItsName) {
  const std::string word = "--url=zookeeper://h1,h2?auth=digest:me:hunter2";
  EXPECT_EQ(hidden({word}).front(), in_place_of(word, "--url=zookeeper://h1,h2?auth=***"));
}

TEST(HiddenWords, AnOptionRunTogetherWithItsUrlIsHiddenToo) {
  const std::string word = "--urlredis://me:hunter2@db1?lease=5s";
  EXPECT_EQ(hidden({word}).front(), in_place_of(word, "--urlredis://***"));
}

TEST(HiddenWords, OfWhatIsNoUrlTheSchemeIsLeft) {
  const std::string word = "redis://me:hunter2@[::1/";
  EXPECT_EQ(hidden({word}).front(), in_place_of(word, "redis://***"));
}

TEST(HiddenWords, APasswordThatIsShorterThanItsMarkIsHiddenToo) {
  EXPECT_EQ(hidden({"redis://:p@h"}).front(), "redis://:***");
  EXPECT_EQ(hidden({"x://p@["}).front(), "x://***");
}

TEST(HiddenWords, WithoutASecretNothingIsTouched) {
  const std::vector<std::string> words = {"run", "--url", "redis://me@db1/0?lease=5s", "--wait=1s", "a b", ""};
  EXPECT_EQ(hidden(words), words);
}

TEST(HiddenWords, WhatAShellAsksForCompletionIsOurs) {
  const std::string url = "redis://me:hunter2@db1/0";
  EXPECT_EQ(
      hidden({"complete", "--", "run", "--url", url, "j"}),
      (std::vector<std::string>{"complete", "--", "run", "--url", in_place_of(url, "redis://me:***@db1/0"), "j"}));
}

TEST(HiddenWords, TheCommandIsNotOurs) {
  const std::vector<std::string> words = {"run", "job", "--", "curl", "https://me:hunter2@web"};
  EXPECT_EQ(hidden(words), words);
}

}  // namespace
}  // namespace dlock::cli
