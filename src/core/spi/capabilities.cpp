#include <dlock/capabilities.hpp>

namespace dlock {

std::string_view to_string(Scope scope) noexcept {
  switch (scope) {
    case Scope::process:
      return "process";
    case Scope::machine:
      return "machine";
    case Scope::network:
      return "network";
  }
  return "unknown";
}

std::string_view to_string(LeaseKind kind) noexcept {
  switch (kind) {
    case LeaseKind::per_lock:
      return "per_lock";
    case LeaseKind::session:
      return "session";
    case LeaseKind::process:
      return "process";
  }
  return "unknown";
}

std::string_view to_string(FencingDurability durability) noexcept {
  switch (durability) {
    case FencingDurability::none:
      return "none";
    case FencingDurability::wall_clock:
      return "wall_clock";
    case FencingDurability::service:
      return "service";
  }
  return "unknown";
}

}  // namespace dlock
