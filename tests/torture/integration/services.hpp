// The services that the tests of this directory disturb the clients of, each with a lease of two seconds or
// thereabouts.
#pragma once

#include <functional>
#include <memory>
#include <ostream>
#include <string>
#include <vector>

namespace dlock::torture {

// Runs while the object lives.
class Service {
 public:
  virtual ~Service() = default;
  [[nodiscard]] virtual std::string url() const = 0;
};

struct ServiceKind {
  std::string name;  // also of the test
  bool renews;       // each lock, one by one
  std::function<std::unique_ptr<Service>()> start;
};

// Those that are built here.
[[nodiscard]] std::vector<ServiceKind> all_services();

inline void PrintTo(const ServiceKind& kind, std::ostream* out) {
  *out << kind.name;
}

}  // namespace dlock::torture
