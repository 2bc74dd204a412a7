// URLs that are refused, each with a word of the refusal. None of these shows the password, which is "hidden".
//
//   expect_refused(&parse, {{"redis://me:hidden@a,b", "host"}, {"redis://h?colour=red", "colour"}});
#pragma once

#include <gtest/gtest.h>

#include <initializer_list>
#include <string>
#include <utility>

#include <dlock/error.hpp>

namespace dlock::test {

template <class Parse>
void expect_refused(const Parse& parse, std::initializer_list<std::pair<std::string, std::string>> cases) {
  for (const auto& [url, part] : cases) {
    try {
      (void)parse(url);
      ADD_FAILURE() << url << " was accepted";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), errc::invalid_argument) << url;
      EXPECT_NE(error.detail().find(part), std::string::npos) << url << ": " << error.detail();
      EXPECT_EQ(error.detail().find("hid"), std::string::npos) << url << ": " << error.detail();
    }
  }
}

}  // namespace dlock::test
