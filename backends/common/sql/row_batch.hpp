// The row strategies send one query at a time, and requests that are made meanwhile go into the next one, so that many
// locks share a statement, a round trip and a commit.
//
// A request waits, is in flight, and is answered. It waits again
//   - if its lock has no row yet: the next query makes it,
//   - if another client is changing its row: a few times, with growing pauses,
//   - if the query was rolled back because of one of its requests: then each is sent alone,
//   - if the server's queue of notifications was full: then it notifies no client.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include <dlock/spi/executor.hpp>
#include <dlock/spi/lifetime.hpp>

#include "backends/common/request_table.hpp"
#include "backends/common/sql/batch_window.hpp"
#include "backends/common/sql/commands.hpp"
#include "backends/common/sql/row_request.hpp"
#include "backends/common/sql/row_store.hpp"

namespace dlock::sql {

struct BatchedRequest {
  std::shared_ptr<const RowRequest> request;
  std::function<void(const RowAnswer&)> done;
  int times_locked = 0;  // another client was changing the row
};

// In tasks only.
class RowBatch final : private common::RequestTable<BatchedRequest>::User {
 public:
  using Handler = std::function<void(const RowAnswer&)>;

  // Both outlive it.
  RowBatch(Commands& commands, const RowStore& store);

  // The handler is called once, never inside the call, and not much later than at the deadline.
  void ask(RowRequest request, Handler done);

 private:
  using Table = common::RequestTable<BatchedRequest>;
  using Entries = std::vector<Table::Entry>;
  struct Load;

  void schedule();
  void identify_server();
  void send();
  void send(Entries entries);
  [[nodiscard]] bool is_suspect(const RowRequest& request) const;
  [[nodiscard]] Entries fit_for_one_query(Entries entries);
  void answered(const std::shared_ptr<Load>& load, const Outcome& outcome, const Results& results);
  void refused(const Load& load, Outcome outcome);
  void undo(const Load& load);
  void suspect(const Load& load, const Outcome& outcome);
  void give(const Load& load, const std::vector<RowAnswer>& answers);
  void ask_again(const Load& load);
  void pause(Table::Entry entry);
  void end_pauses();

  void requests_catch_up() override {}
  TimePoint requests_unresponsive() override { return TimePoint::max(); }
  void requests_overdue(Entries sent, Entries unsent) override;

  [[nodiscard]] TimePoint now() const { return commands_.executor().now(); }

  Commands& commands_;
  const RowStore& store_;
  Table requests_;
  std::size_t in_flight_ = 0;  // queries
  bool scheduled_ = false;
  bool server_is_known_;
  BatchWindow window_;
  Timer window_timer_;
  std::multimap<TimePoint, Table::Entry> pausing_;
  Timer pause_timer_;
  TimePoint quiet_until_ = TimePoint::min();             // no notifications until then
  std::unordered_map<std::string, TimePoint> suspects_;  // names that are sent alone until then
  Lifetime lifetime_;
};

}  // namespace dlock::sql
