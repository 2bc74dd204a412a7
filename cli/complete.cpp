// dlock complete: called by shells.
#include <exception>

#include <dlock/client.hpp>
#include <dlock/info.hpp>

#include "cli/command_line.hpp"
#include "cli/commands.hpp"
#include "cli/completion.hpp"
#include "cli/location.hpp"
#include "cli/program.hpp"
#include "cli/text.hpp"

namespace dlock::cli {

namespace {

// None if the service is unreachable: a shell cannot show the reason.
std::vector<std::string> lock_names(const std::string& url, const std::string& kind) {
  std::vector<std::string> names;
  try {
    const auto* const found = std::ranges::find(every_kind, kind, kind_word);
    const LockKind of = found == every_kind.end() ? LockKind::lock : *found;
    const Client client = connect(service_url(url.empty() ? std::nullopt : std::optional(url)), {.label = "dlock"});
    for (const LockInfo& each : client.list(of)) {
      if (printable(each.name) == each.name) names.push_back(each.name);  // an escaped text would be a different name
    }
  } catch (const std::exception&) {
  }
  return names;
}

}  // namespace

int complete(const std::vector<std::string>& words, const Inherited& inherited) {
  if (words.size() > 3 && words[2] != "help") {
    if (const auto other = words_for_other_program({words[2]})) {
      std::vector<std::string> asked = {other->front(), "complete", "--"};
      asked.insert(asked.end(), words.begin() + 3, words.end());
      return become(asked, inherited);
    }
  }
  return print_completion(CommandLine().app, words, lock_names);
}

}  // namespace dlock::cli
