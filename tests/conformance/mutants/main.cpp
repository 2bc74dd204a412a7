// Runs the suite on the mutant backend: the correct one, or one that is broken as `--mutation=NAME`, the first
// argument, says.
#include <iostream>
#include <memory>
#include <string_view>

#include <dlock/conformance/suite.hpp>

#include "memory/memory_fixture.hpp"
#include "mutants/mutant_backend.hpp"

int main(int argc, char** argv) {
  namespace conformance = dlock::conformance;
  constexpr std::string_view option = "--mutation=";
  auto mutation = conformance::Mutation::none;
  if (argc > 1 && std::string_view(argv[1]).starts_with(option)) {
    const auto wanted = conformance::parse_mutation(std::string_view(argv[1]).substr(option.size()));
    if (!wanted) {
      std::cerr << "unknown mutation: " << argv[1] << '\n';
      return 2;
    }
    mutation = *wanted;
    argv[1] = argv[0];
    --argc;
    ++argv;
  }
  conformance::add_subject({"mutant", [mutation] {
                              return std::make_unique<conformance::MemoryFixture>(
                                  "queue", conformance::mutant_backend(mutation));
                            }});
  return conformance::run(argc, argv);
}
