#include "cli/account.hpp"

#include <array>
#include <cstddef>
#include <utility>

#include <nlohmann/json.hpp>

#include "cli/exit_code.hpp"
#include "cli/text.hpp"

namespace dlock::cli {

double seconds(std::chrono::nanoseconds duration) {
  return static_cast<double>(std::chrono::round<std::chrono::milliseconds>(duration).count()) / 1000;
}

void Account::conclude(Result how, int with_status, std::string why) {
  result = how;
  status = with_status;
  reason = std::move(why);
}

void Account::fail(const std::exception& error) {
  conclude(Result::failed, static_cast<int>(exit_code(error)), error.what());
}

std::string_view to_string(Account::Result result) noexcept {
  static constexpr std::array words{"ran", "conflict", "interrupted", "lost", "failed"};
  return words.at(static_cast<std::size_t>(result));
}

Json to_json(const Account& account, const std::vector<std::string>& names, LockKind kind) {
  Json json = names_and_tokens(names, account.tokens);
  json["kind"] = kind_word(kind);
  json["result"] = to_string(account.result);
  json["reason"] = account.reason.empty() ? Json() : Json(account.reason);
  json["status"] = account.status;
  json["command_status"] = account.command_status ? Json(*account.command_status) : Json();
  json["waited_seconds"] = seconds(account.waited);
  json["held_seconds"] = account.held ? Json(seconds(*account.held)) : Json();
  return json;
}

}  // namespace dlock::cli
