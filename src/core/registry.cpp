#include "core/registry.hpp"

#include <map>
#include <utility>

#include <dlock/error.hpp>

#include "core/names.hpp"
#include "util/mutex.hpp"

namespace dlock {

namespace {

class Registry {
 public:
  void add(std::string scheme, BackendFactory factory) {
    if (!detail::is_scheme(scheme)) {
      throw Error(errc::invalid_argument, "scheme " + detail::quoted(scheme) + " is not a lower-case URL scheme");
    }
    if (!factory) throw Error(errc::invalid_argument, "scheme \"" + scheme + "\": the factory is empty");
    const util::MutexLock lock(mutex_);
    if (!factories_.try_emplace(scheme, std::move(factory)).second) {
      throw Error(errc::invalid_argument, "scheme \"" + scheme + "\" is registered already");
    }
  }

  [[nodiscard]] BackendFactory find(const std::string& scheme) {
    const util::MutexLock lock(mutex_);
    const auto found = factories_.find(scheme);
    if (found != factories_.end()) return found->second;
    std::string known;
    for (const auto& [name, factory] : factories_) known += (known.empty() ? "" : ", ") + name;
    throw Error(errc::invalid_argument, "URL: no backend for scheme \"" + scheme + "\"; this build has " + known);
  }

  [[nodiscard]] std::vector<std::string> schemes() {
    const util::MutexLock lock(mutex_);
    std::vector<std::string> out;
    out.reserve(factories_.size());
    for (const auto& [name, factory] : factories_) out.push_back(name);
    return out;
  }

 private:
  util::Mutex mutex_;
  std::map<std::string, BackendFactory> factories_ DLOCK_GUARDED_BY(mutex_);
};

// register_backend() is for the whole process by contract, so this is the one global of the library. It is never
// destroyed: threads may still connect while static objects go away.
Registry& registry() {
  static Registry& the_registry = *[] {
    static auto* const made = new Registry();
    detail::register_builtin_backends(
        [](std::string scheme, BackendFactory factory) { made->add(std::move(scheme), std::move(factory)); });
    return made;
  }();
  return the_registry;
}

}  // namespace

void register_backend(std::string scheme, BackendFactory factory) {
  registry().add(std::move(scheme), std::move(factory));
}

std::vector<std::string> backends() {
  return registry().schemes();
}

namespace detail {

BackendFactory find_backend(const std::string& scheme) {
  return registry().find(scheme);
}

}  // namespace detail

}  // namespace dlock
