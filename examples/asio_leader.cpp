// A service on one event loop, whose leader does the work, until a signal stops it. No thread waits.
//
//   asio_leader [URL]
#include <asio/awaitable.hpp>
#include <asio/co_spawn.hpp>
#include <asio/experimental/awaitable_operators.hpp>
#include <asio/io_context.hpp>
#include <asio/signal_set.hpp>
#include <asio/steady_timer.hpp>
#include <asio/this_coro.hpp>
#include <asio/use_awaitable.hpp>
#include <csignal>
#include <exception>
#include <iostream>
#include <string>

#include <dlock/asio.hpp>
#include <dlock/dlock.hpp>

using namespace asio::experimental::awaitable_operators;
using namespace std::chrono_literals;
using asio::use_awaitable;

namespace {

// Works while it leads.
asio::awaitable<void> lead(dlock::Lease& lease) {
  asio::steady_timer timer(co_await asio::this_coro::executor);
  for (int step = 1; lease.held(); ++step) {
    // One step of the work, with lease.token() for what it writes to: see fenced_write.cpp.
    std::cout << "step " << step << '\n';
    if (step == 3) std::raise(SIGTERM);  // here the example stops itself
    timer.expires_after(10ms);
    co_await timer.async_wait(use_awaitable);
  }
}

// Campaigns, leads until the lease is lost, and campaigns again.
asio::awaitable<void> serve(const dlock::Client& client, std::string address) {
  dlock::Election election = client.make_election("scheduler");
  while (true) {
    dlock::Lease lease = co_await dlock::async_campaign(election, {.value = address}, use_awaitable);
    std::cout << address << " leads\n";
    co_await lead(lease);
  }
}

asio::awaitable<void> serve_until_stopped(const dlock::Client& client) {
  asio::signal_set signals(co_await asio::this_coro::executor, SIGINT, SIGTERM);
  // A signal cancels the campaign, or the work: then the lease's destructor resigns.
  co_await (serve(client, "10.0.0.7:80") || signals.async_wait(use_awaitable));
  std::cout << "stopped, and resigned\n";
}

}  // namespace

int main(int argc, char** argv) {
  const std::string url = argc > 1 ? argv[1] : "memory://";
  try {
    const dlock::Client client = dlock::connect(url);
    asio::io_context io;
    asio::co_spawn(io, serve_until_stopped(client), [](std::exception_ptr problem) {
      if (problem) std::rethrow_exception(problem);
    });
    io.run();
  } catch (const std::exception& e) {
    std::cerr << "asio_leader: " << e.what() << '\n';
    return 1;
  }
}
