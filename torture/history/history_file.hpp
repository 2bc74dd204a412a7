// Histories in files: a file for each process, a line for each event.
//
//   HistoryFile history(directory / "process-3.jsonl");
//   history.note({.at = LeaseClock::now(), .kind = Kind::asked, ...});
//   std::vector<Event> events = read_histories(directory);
//
// A line is one write(2) to a file that is appended to, so what a process noted is there when it is killed right after.
#pragma once

#include <cstddef>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "torture/history/event.hpp"
#include "util/unique_fd.hpp"

namespace dlock::torture {

using NoteEvent = std::function<void(const Event&)>;

class HistoryFile {
 public:
  // Appends to what is there. Throws std::system_error.
  explicit HistoryFile(const std::filesystem::path& file);

  // Any thread. Throws std::system_error when the line could not be written: a history with a gap proves nothing.
  void note(const Event& event);

 private:
  util::UniqueFd fd_;
};

// Drops the last line if it was torn; throws std::runtime_error, naming file and line, for any other that is no event.
[[nodiscard]] std::vector<Event> read_history(const std::filesystem::path& file);

// All *.jsonl of a directory, in the order of time. Throws if there is none.
[[nodiscard]] std::vector<Event> read_histories(const std::filesystem::path& directory);

// In the order of time; events of one process at the same time stay in their order.
void sort_by_time(std::vector<Event>& events);

}  // namespace dlock::torture
