#include "torture/worker/worker.hpp"

#include <atomic>
#include <cstdlib>
#include <exception>
#include <iostream>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <thread>
#include <utility>
#include <vector>

#include <dlock/client.hpp>

#include "torture/worker/contender.hpp"

namespace dlock::torture {

void work(const Plan& plan, const std::string& url) {
  HistoryFile history(plan.history);
  const Board board(plan.board, plan.seats);
  const auto note = [&](Kind kind, std::string word) {
    history.note({.at = LeaseClock::now(), .kind = kind, .process = plan.process, .word = std::move(word)});
  };
  note(Kind::started, "a worker with " + std::to_string(plan.threads) + " threads");
  std::exception_ptr failure;
  {
    const Client client = connect(url, {.label = "torture-" + std::to_string(plan.process), .lease = plan.lease});
    std::atomic<std::uint64_t> attempts{0};
    std::mutex mutex;
    std::vector<std::jthread> threads;
    for (std::size_t i = 0; i < plan.threads; ++i) {
      threads.emplace_back([&, seat = plan.first_seat + i] {
        try {
          Contender contender(plan, client, board, history, seat, attempts);
          board.seat(seat).process.store(plan.process);  // all its own files are open
          contender.run();
        } catch (...) {
          const std::scoped_lock lock(mutex);
          if (!failure) failure = std::current_exception();
          board.call_it_a_day();
        }
      });
    }
  }
  if (failure) std::rethrow_exception(failure);
  note(Kind::ended, {});
}

int worker_main(const std::string& plan_file) {
  try {
    const char* const url = std::getenv(url_variable);
    if (url == nullptr) throw std::runtime_error(std::string(url_variable) + " is not set");
    work(load_plan(plan_file), url);
    return EXIT_SUCCESS;
  } catch (const std::exception& e) {
    std::cerr << "torture worker: " << e.what() << '\n';
    return EXIT_FAILURE;
  }
}

}  // namespace dlock::torture
