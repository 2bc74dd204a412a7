// write_page < JSON > PAGE: a report of "dlock bench" as a page, for tests/browser/check_report.
#include <iostream>
#include <iterator>
#include <string>

#include "bench/report/report.hpp"

int main() {
  std::cout << dlock::bench::to_html(
      dlock::bench::from_json(std::string(std::istreambuf_iterator<char>(std::cin), {})));
  return std::cout.flush() ? 0 : 1;
}
