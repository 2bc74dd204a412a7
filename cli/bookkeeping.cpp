#include "cli/bookkeeping.hpp"

#include <exception>
#include <string>

#include <nlohmann/json.hpp>

#include "cli/json.hpp"
#include "cli/output.hpp"

namespace dlock::cli {

Bookkeeping::Bookkeeping(const Arguments& arguments) : arguments_(arguments) {
  if (!arguments.json_file.empty()) json_.emplace("--json", arguments.json_file);
  if (!arguments.metrics_file.empty()) metrics_.emplace(arguments.metrics_file);
}

void Bookkeeping::enter(const Account& account) {
  try {
    if (metrics_) metrics_->write(account, arguments_.names, arguments_.kind);
  } catch (const std::exception& error) {
    say(std::string("warning: the metrics were not written: ") + error.what());
  }
  if (!json_) return;
  flush_messages();  // the account is dlock's last output, even if it goes to standard error
  try {
    json_->write(json_line(to_json(account, arguments_.names, arguments_.kind)));
  } catch (const std::exception& error) {
    say(std::string("warning: the account was not written: ") + error.what());
  }
}

}  // namespace dlock::cli
