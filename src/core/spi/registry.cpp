#include "core/spi/registry.hpp"

#include <algorithm>
#include <atomic>
#include <memory>
#include <utility>

#include <dlock/error.hpp>

#include "util/names.hpp"

namespace dlock {

namespace {

struct Scheme {
  std::string name;
  BackendFactory factory;
  const Scheme* next;
};

// register_backend() is for the whole process by contract, so this is the one global of the library. The list only
// grows, and there is no mutex: if another thread had locked one at a fork(), it would stay locked in the child.
// Schemes are never destroyed: threads may still connect while static objects are destroyed.
constinit std::atomic<const Scheme*> first_scheme{nullptr};

const Scheme* find_from(const Scheme* scheme, const std::string& name) {
  while (scheme != nullptr && scheme->name != name) scheme = scheme->next;
  return scheme;
}

// False: the name is taken.
bool add(std::string name, BackendFactory factory) {
  auto scheme = std::make_unique<Scheme>(Scheme{std::move(name), std::move(factory), first_scheme.load()});
  do {
    if (find_from(scheme->next, scheme->name) != nullptr) return false;
  } while (!first_scheme.compare_exchange_weak(scheme->next, scheme.get()));
  (void)scheme.release();  // the list has it now
  return true;
}

const Scheme* schemes() {
  static constinit std::atomic<bool> complete{false};
  if (!complete) {
    // Threads that get here at the same time each add all that are missing.
    detail::register_builtin_backends(
        [](std::string name, BackendFactory factory) { (void)add(std::move(name), std::move(factory)); });
    complete = true;
  }
  return first_scheme;
}

}  // namespace

void register_backend(std::string scheme, BackendFactory factory) {
  if (!util::is_scheme(scheme)) {
    throw Error(errc::invalid_argument, "scheme " + util::quoted(scheme) + " is not a lower-case URL scheme");
  }
  if (!factory) throw Error(errc::invalid_argument, "scheme \"" + scheme + "\": the factory is empty");
  (void)schemes();  // those that are built in go first
  if (!add(scheme, std::move(factory))) {
    throw Error(errc::invalid_argument, "scheme \"" + scheme + "\" is registered already");
  }
}

std::vector<std::string> backends() {
  std::vector<std::string> out;
  for (const Scheme* scheme = schemes(); scheme != nullptr; scheme = scheme->next) out.push_back(scheme->name);
  std::sort(out.begin(), out.end());
  return out;
}

namespace detail {

BackendFactory find_backend(const std::string& scheme) {
  if (const Scheme* const found = find_from(schemes(), scheme)) return found->factory;
  std::string known;
  for (const std::string& name : backends()) known += (known.empty() ? "" : ", ") + name;
  throw Error(errc::invalid_argument, "URL: no backend for scheme \"" + scheme + "\"; this build has " + known);
}

}  // namespace detail

}  // namespace dlock
