// Failures that calls throw. URLs that are refused, each with a word of the refusal: none of these shows the password,
// which is "hidden".
//
//   expect_refused(&parse, {{"redis://me:hidden@a,b", "host"}, {"redis://h?colour=red", "colour"}});
#pragma once

#include <gtest/gtest.h>

#include <initializer_list>
#include <string>
#include <utility>

#include <dlock/error.hpp>

namespace dlock::test {

// Without a code if the call throws none.
template <class Call>
[[nodiscard]] Failure thrown_by(Call&& call) {
  try {
    (void)call();
  } catch (const Error& error) {
    return {error.code(), error.detail()};
  }
  return {};
}

template <class Parse>
void expect_refused(const Parse& parse, std::initializer_list<std::pair<std::string, std::string>> cases) {
  for (const auto& [url, part] : cases) {
    const Failure why = thrown_by([&] { (void)parse(url); });
    EXPECT_EQ(why.code, errc::invalid_argument) << url;
    EXPECT_NE(why.detail.find(part), std::string::npos) << url << ": " << why.detail;
    EXPECT_EQ(why.detail.find("hid"), std::string::npos) << url << ": " << why.detail;
  }
}

}  // namespace dlock::test
