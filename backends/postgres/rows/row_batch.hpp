// What the row strategies ask of their table: one query at a time, and what is asked meanwhile goes into the next one,
// so that many locks share a statement, a round trip and a commit. (What is long is one query for each kind.)
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <dlock/spi/executor.hpp>
#include <dlock/spi/lifetime.hpp>

#include "backends/postgres/rows/batch_window.hpp"
#include "backends/postgres/rows/row_commands.hpp"
#include "backends/postgres/rows/row_request.hpp"
#include "backends/postgres/rows/row_sql.hpp"
#include "backends/postgres/sessions/commands.hpp"

namespace dlock::postgres {

// In tasks only.
class RowBatch {
 public:
  using Handler = std::function<void(const RowAnswer&)>;

  using Variant = RowCommands::Variant;

  // All outlive it. channel: where waiters listen.
  RowBatch(Commands& commands, RowSql& sql, Variant variant, std::string channel);
  ~RowBatch();

  // The handler is called once, never inside the call, and not much later than at the deadline.
  void ask(RowRequest request, Handler done);

 private:
  struct Item {
    RowRequest request;
    Handler done;
    std::size_t at_most;  // in one query; fewer and fewer where an error may be its fault
    std::vector<std::shared_ptr<Item>> followers = {};
  };
  using Items = std::vector<std::shared_ptr<Item>>;
  // What goes out together, by kind.
  struct Load;

  void schedule();
  void send();
  [[nodiscard]] std::shared_ptr<Load> take_load();
  [[nodiscard]] Query query_of(const std::shared_ptr<Load>& load);

  void answered(const std::shared_ptr<Load>& load, const Outcome& outcome, const Results& results);
  void refused(const std::shared_ptr<Load>& load, const Outcome& answered);
  void search(const std::shared_ptr<Load>& load, const Outcome& outcome);
  void ask_again_first(const Items& items);
  void give(const Items& items, const std::vector<RowAnswer>& answers);
  void give(Item& item, const RowAnswer& answer);
  void arm(TimePoint at);
  void fail_overdue();

  Commands& commands_;
  RowSql& sql_;
  const Variant variant_;
  const RowCommands statements_;
  std::deque<std::shared_ptr<Item>> waiting_;
  std::vector<std::shared_ptr<Load>> under_way_;
  bool scheduled_ = false;
  BatchWindow window_;
  Timer window_timer_;
  TimePoint quiet_until_ = TimePoint::min();  // no notifications until then
  TimePoint armed_for_ = TimePoint::max();
  Timer timer_;
  Lifetime lifetime_;
};

}  // namespace dlock::postgres
