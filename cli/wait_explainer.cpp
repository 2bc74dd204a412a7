#include "cli/wait_explainer.hpp"

#include <chrono>
#include <exception>

#include <fmt/format.h>

#include "cli/lock_report.hpp"
#include "cli/text.hpp"

namespace dlock::cli {

namespace {

std::string since(const LockInfo& info, const Capabilities& capabilities) {
  const auto taken = taken_at(info, capabilities);
  const auto now = std::chrono::system_clock::now();
  if (!taken || *taken > now) return {};  // the clock of the service is ahead of ours
  return fmt::format(" (for {})", for_people(now - *taken));
}

}  // namespace

// dlock would have to wait for the answer before it can exit, so a service that has not answered yet is not asked.
bool WaitExplainer::worth_asking() const {
  const Capabilities capabilities = client_.capabilities();
  return capabilities.can_inspect && (capabilities.scope != Scope::network || reporter_.connected());
}

void WaitExplainer::explain(const std::vector<std::string>& names, LockKind kind) {
  if (worth_asking()) {
    thread_ = std::jthread([this, names, kind] { ask(names, kind); });
  } else {
    tell("waiting for " + quoted(names));
  }
}

void WaitExplainer::ask(const std::vector<std::string>& names, LockKind kind) {
  std::string text = "waiting for " + quoted(names);
  try {
    for (const std::string& name : names) {
      const LockInfo info = client_.inspect(name, kind);
      if (info.holder.empty() || info.holder == client_.holder()) {  // of several, the first ones are ours
        if (is_over()) return;
        continue;
      }
      text += names.size() == 1 ? ", held by " : fmt::format(": \"{}\" is held by ", name);
      text += info.holder + since(info, client_.capabilities());
      if (info.holders.size() > 1) text += fmt::format(" and {} more", info.holders.size() - 1);
      break;
    }
  } catch (const std::exception&) {
    // Trouble with the service is reported by the wait itself.
  }
  tell(text);
}

void WaitExplainer::tell(const std::string& text) {
  const std::scoped_lock lock(mutex_);
  if (!over_) person_(text);
}

bool WaitExplainer::is_over() {
  const std::scoped_lock lock(mutex_);
  return over_;
}

void WaitExplainer::wait_is_over() {
  const std::scoped_lock lock(mutex_);
  over_ = true;
}

}  // namespace dlock::cli
