// Histories in files: a file for each process, a line for each event.
//
//   HistoryFile history(directory / "process-3.jsonl");
//   history.note({.at = LeaseClock::now(), .kind = Kind::asked, ...});
//   std::vector<Event> events = read_histories(directory);
//
// Each line is one write(2) in append mode, so an event is kept even if its process is killed right after.
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

  // Any thread. Throws std::system_error if the line could not be written: an incomplete history proves nothing.
  void note(const Event& event);

 private:
  util::UniqueFd fd_;
};

// Drops an incomplete last line; for any other that is no event, throws std::runtime_error with file and line.
[[nodiscard]] std::vector<Event> read_history(const std::filesystem::path& file);

// All *.jsonl of a directory, in the order of time. Throws if there is none.
[[nodiscard]] std::vector<Event> read_histories(const std::filesystem::path& directory);

// In the order of time; events of one process at the same time stay in their order.
void sort_by_time(std::vector<Event>& events);

}  // namespace dlock::torture
