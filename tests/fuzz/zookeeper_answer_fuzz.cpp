// Arbitrary answers of ZooKeeper servers to srvr: findings that can be shown, whatever they say.
#include <string>
#include <string_view>
#include <vector>

#include "backends/zookeeper/administration/server_report.hpp"
#include "tests/fuzz/checks.hpp"

namespace {

using dlock::fuzz::require;

// Cuts what is before the next zero byte.
std::string take_answer(std::string_view& text) {
  const std::string_view answer = text.substr(0, text.find('\0'));
  text.remove_prefix(answer.size() < text.size() ? answer.size() + 1 : answer.size());
  return std::string(answer);
}

void require_showable(std::string_view text) {
  for (const char c : text) require(static_cast<unsigned char>(c) >= 0x20 && c != 0x7f);
  require(text.size() < 1024);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::string_view text = dlock::fuzz::as_text(data, size);
  std::vector<dlock::zookeeper::ServerReport> reports;
  while (!text.empty() && reports.size() < 3) {
    reports.push_back({.host = {.name = "h", .port = 2181}, .srvr = take_answer(text)});
  }
  for (const dlock::Finding& finding : dlock::zookeeper::judge(reports)) {
    require_showable(finding.check);
    require_showable(finding.message);
  }
  return 0;
}
