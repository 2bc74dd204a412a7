// Queries over a connection of libpq that is logged in, in its pipeline mode: many may be under way, each ends with a
// Sync of its own, and nothing here blocks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include <dlock/spi/executor.hpp>
#include <dlock/spi/lifetime.hpp>

#include "backends/postgres/libpq/libpq_handle.hpp"
#include "backends/postgres/sql/connection.hpp"

namespace dlock::postgres {

// In tasks only.
class Pipeline final {
 public:
  // None is called inside a call to the pipeline but receive() and break_off(). Any of them, and any handler, may
  // destroy it.
  class Events {
   public:
    Events() = default;
    Events(const Events&) = delete;
    Events& operator=(const Events&) = delete;
    // All queries have been answered; nothing follows.
    virtual void pipeline_broken(const Failure& why) = 0;
    virtual void pipeline_notified(const std::string& channel, const std::string& payload) = 0;

   protected:
    ~Events() = default;
  };

  // The endpoint is for messages.
  Pipeline(Executor& executor, PgHandle connection, std::string endpoint, Events& events);
  ~Pipeline();
  Pipeline(const Pipeline&) = delete;
  Pipeline& operator=(const Pipeline&) = delete;

  // Once, before anything is sent. What is wrong, if it is.
  [[nodiscard]] std::optional<Failure> start();
  // From now on, whether statements are prepared. At first they are not.
  void prepare_statements(bool yes) noexcept { prepares_ = yes; }

  // As Connection's.
  void send(Query query);
  void receive();
  void break_off(const Failure& why);
  [[nodiscard]] bool broken() const noexcept { return !connection_; }

  [[nodiscard]] int server_version() const noexcept { return PQserverVersion(connection_.get()); }
  [[nodiscard]] bool encrypted() const noexcept { return PQsslInUse(connection_.get()) == 1; }
  [[nodiscard]] int backend_pid() const noexcept { return PQbackendPID(connection_.get()); }

 private:
  // What libpq answers to: the preparing of a statement, or a command.
  struct Step {
    const Statement* statement = nullptr;  // if it is one
    bool prepares = false;
    std::size_t command = 0;
  };
  struct InFlight {
    Handler done;
    TimePoint sent;
    std::vector<Step> steps;
    std::size_t step = 0;  // the one that is being answered
    Results results;
    std::optional<Outcome> refusal;
  };
  // How a statement is known to the server. While it is being prepared it is sent whole: should the preparing fail,
  // each use fails for its own reason.
  struct Prepared {
    std::string name;
    bool certain = false;
  };

  void schedule_writing();
  void write_out();
  [[nodiscard]] bool hand_over(Query query);
  [[nodiscard]] bool hand_over_command(const Command& command, std::size_t number, InFlight& entry);
  [[nodiscard]] bool prepare(const Statement& statement, std::size_t number, InFlight& entry);
  void flush();
  void wait_readable();
  void wait_writable();

  [[nodiscard]] bool answer_has_no_end();
  void take_input();
  [[nodiscard]] bool take_results();
  void take_notifications();
  void take_result(const PGresult& result);
  void take_refusal(const PGresult& result, InFlight& entry);
  void finish_query();
  void break_off_soon(Failure why);
  [[nodiscard]] Failure broken_because(const std::string& why) const;
  static void on_notice(void* self, const PGresult* notice);
  void note_end(const PGresult& message);

  Executor& executor_;
  const std::string endpoint_;
  Events& events_;
  PgHandle connection_;                     // empty: broken
  std::unique_ptr<Descriptor> descriptor_;  // destroyed before the socket is closed

  std::deque<Query> unsent_;        // libpq knows nothing of them
  std::deque<InFlight> in_flight_;  // libpq has them, and the network perhaps
  std::unordered_map<const Statement*, Prepared> prepared_;
  std::size_t names_given_ = 0;
  bool prepares_ = false;
  bool clogged_ = false;       // libpq has something that the network does not take
  bool taking_input_ = false;  // what is asked meanwhile goes out in one piece
  bool writing_posted_ = false;
  bool result_ends_ = false;                   // the next thing is the end of a step
  bool answered_ = false;                      // a query, since the last look
  std::optional<std::uint64_t> counted_from_;  // bytes received when it was first seen that nothing was answered
  std::optional<Failure> ended_;               // the server said so
  std::string sqlstate_of_end_;                // if it did
  Lifetime lifetime_;
};

}  // namespace dlock::postgres
