#include "cli/wait_explainer.hpp"

#include <exception>

#include <fmt/format.h>

namespace dlock::cli {

// dlock would have to wait for the answer before it can exit, so a service that has not answered yet is not asked.
bool WaitExplainer::worth_asking() const {
  const Capabilities capabilities = client_.capabilities();
  return capabilities.can_inspect && (capabilities.scope != Scope::network || reporter_.connected());
}

void WaitExplainer::explain(const std::string& name) {
  if (worth_asking()) {
    thread_ = std::jthread([this, name] { ask(name); });
  } else {
    tell(name, {});
  }
}

void WaitExplainer::ask(const std::string& name) {
  std::string holder;
  try {
    holder = client_.inspect(name).holder;
  } catch (const std::exception&) {
    // Trouble with the service is reported by the wait itself.
  }
  tell(name, holder);
}

void WaitExplainer::tell(const std::string& name, const std::string& holder) {
  const std::scoped_lock lock(mutex_);
  if (over_) return;
  person_(holder.empty() ? fmt::format("waiting for \"{}\"", name)
                         : fmt::format("waiting for \"{}\", held by {}", name, holder));
}

void WaitExplainer::wait_is_over() {
  const std::scoped_lock lock(mutex_);
  over_ = true;
}

}  // namespace dlock::cli
