// Sends a query to the backend and waits for the answer.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <utility>

#include <dlock/spi/backend.hpp>

#include "core/client/blocking.hpp"
#include "core/client/client_core.hpp"
#include "core/client/failures.hpp"
#include "util/event.hpp"

namespace dlock::detail {

// question(backend, done) runs as a task. Blocks for at most `limit`, by default response_limit().
template <class T, class Question>
[[nodiscard]] Result<T> ask(const std::shared_ptr<ClientCore>& core, Question question,
                            std::chrono::nanoseconds limit) {
  struct Answer {
    util::Event arrived;
    std::optional<Result<T>> result;
  };
  if (core->context().foreign_process()) return failures::closed();
  if (core->engine().must_not_block()) return core->closing() ? failures::closed() : would_deadlock();
  const auto answer = std::make_shared<Answer>();
  const Backend::Handler<T> done = [answer](Result<T> result) {
    answer->result = std::move(result);
    answer->arrived.set();
  };
  const bool accepted = core->engine().dispatch([core, question = std::move(question), done] {
    if (core->closing()) {
      done(failures::closed());
    } else {
      question(core->backend(), done);
    }
  });
  if (!accepted) return failures::closed();
  if (!core->engine().wait(answer->arrived, limit)) {
    return Failure{errc::unavailable, "the service did not answer in time"};
  }
  return *std::move(answer->result);
}
template <class T, class Question>
[[nodiscard]] Result<T> ask(const std::shared_ptr<ClientCore>& core, Question question) {
  return ask<T>(core, std::move(question), response_limit(core->context()));
}

// Calls a function of the backend whose last parameter is `done`. Returns the value, or throws Error.
template <class T, class Function, class... Arguments>
[[nodiscard]] T ask_or_throw(const std::shared_ptr<ClientCore>& core, Function function, Arguments... arguments) {
  Result<T> result = ask<T>(core, [=](Backend& backend, const auto& done) { (backend.*function)(arguments..., done); });
  if (!result.ok()) throw Error(result.failure());
  return std::move(result.value());
}

}  // namespace dlock::detail
