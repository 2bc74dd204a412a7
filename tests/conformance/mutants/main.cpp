// Runs the suite on the mutant backend: the correct one, or one that is broken as `--mutation=NAME`, the first
// argument, says; with `--sharing-mutation=NAME` of locks of all kinds. With `--untested=TEST,...` instead, on a
// backend that is correct and a fixture that can do little.
#include <algorithm>
#include <iostream>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <dlock/conformance/suite.hpp>

#include "memory/memory_fixture.hpp"
#include "tests/support/mutants/mutation.hpp"

namespace {

// A subject whose fixture can do little, and says that it leaves untested what the list names, divided by commas.
void add_listed(std::string_view list) {
  std::vector<std::string> untested;
  while (!list.empty()) {
    const auto end = std::min(list.find(','), list.size());
    untested.emplace_back(list.substr(0, end));
    list.remove_prefix(std::min(end + 1, list.size()));
  }
  dlock::conformance::add_subject(
      {.name = "listed",
       .make = [] { return std::make_unique<dlock::conformance::UrlFixture>("memory://untested-lists"); },
       .untested = std::move(untested)});
}

}  // namespace

int main(int argc, char** argv) {
  namespace conformance = dlock::conformance;
  namespace memory = dlock::memory;
  namespace mutants = dlock::mutants;
  constexpr std::string_view option = "--mutation=";
  constexpr std::string_view sharing_option = "--sharing-mutation=";
  constexpr std::string_view list_option = "--untested=";
  if (argc > 1 && std::string_view(argv[1]).starts_with(list_option)) {
    add_listed(std::string_view(argv[1]).substr(list_option.size()));
    argv[1] = argv[0];
    return conformance::run(argc - 1, argv + 1);
  }
  auto mutation = mutants::Mutation::none;
  std::vector<dlock::LockKind> kinds{dlock::LockKind::lock};
  const std::string_view first = argc > 1 ? argv[1] : "";
  const bool sharing = first.starts_with(sharing_option);
  if (sharing) kinds = {dlock::LockKind::read_write, dlock::LockKind::semaphore};
  if (sharing || first.starts_with(option)) {
    const auto wanted = mutants::parse_mutation(first.substr(first.find('=') + 1));
    if (!wanted) {
      std::cerr << "unknown mutation: " << argv[1] << '\n';
      return 2;
    }
    mutation = *wanted;
    argv[1] = argv[0];
    --argc;
    ++argv;
  }
  conformance::add_subject(
      {.name = "mutant",
       .make = [mutation] { return std::make_unique<conformance::MemoryFixture>(memory::Strategy::queue, mutation); },
       .kinds = std::move(kinds)});
  return conformance::run(argc, argv);
}
