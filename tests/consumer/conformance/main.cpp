#include <memory>

#include <dlock/conformance/suite.hpp>

#include "../program/table_backend.hpp"

int main(int argc, char** argv) {
  namespace conformance = dlock::conformance;
  dlock::register_backend("table", outside::make_table_backend);
  conformance::add_subject({"table", [] { return std::make_unique<conformance::UrlFixture>("table://"); }});
  return conformance::run(argc, argv);
}
